package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
)

const checkConfig = `
apiVersion: config.vmwarden.io/v1alpha1
kind: WardenConfig
vmNamespace: lab-vms
environments:
- {name: prod, backends: [{namespace: ttlab-prod, name: backend}]}
- {name: dev, backends: [{namespace: ttlab-dev, name: backend}]}
`

const machineManifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: lab-a0000000
  namespace: lab-vms
  labels: {ttlab.io/lab: "true", ttlab.io/session: a0000000-0000-4000-8000-000000000001, ttlab.io/env: prod}
spec:
  template: {spec: {domain: {}}}
`

// runCheck runs check with files of the given content and gives its status and output.
func runCheck(t *testing.T, files map[string]string, arguments ...string) (status int, stdout, stderr string) {
	t.Helper()
	directory := t.TempDir()
	t.Chdir(directory)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errors bytes.Buffer
	command := newCommand(serve)
	command.SetOut(&out)
	status = cli.Run(command, append([]string{"check"}, arguments...), &errors)
	return status, out.String(), errors.String()
}

var checkFiles = map[string]string{"config.yaml": checkConfig, "vm.yaml": machineManifest}

const prodBackend, devBackend = "system:serviceaccount:ttlab-prod:backend", "system:serviceaccount:ttlab-dev:backend"

func TestCheckShowsTheStampsAsADiff(t *testing.T) {
	status, stdout, stderr := runCheck(t, checkFiles, "--config", "config.yaml", "-f", "vm.yaml", "--as", prodBackend)
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{"virtualmachine/lab-a0000000   allowed", "+    vmwarden.io/created-by: " + prodBackend, "+        ttlab.io/env: prod"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
}

// No API server has seen the manifest.
func TestATerminalObeysNothingOfAManifest(t *testing.T) {
	hostile := strings.NewReplacer("name: lab-a0000000", `name: "a\e[2J\u202eb"`, "ttlab.io/env: prod", `ttlab.io/env: "\e[2J\u202e"`).Replace(machineManifest)
	for _, as := range []string{prodBackend, "system:admin"} {
		_, stdout, stderr := runCheck(t, map[string]string{"config.yaml": checkConfig, "vm.yaml": hostile}, "--config", "config.yaml", "-f", "vm.yaml", "--as", as, "--as-group", "system:masters")
		if strings.ContainsAny(stdout+stderr, "\x1b\u202e") || !strings.Contains(stdout, `a\x1b[2J`) {
			t.Errorf("stdout: %q\nstderr: %q", stdout, stderr)
		}
	}
}

func TestCheckAnswersOneForADenialWithItsCauses(t *testing.T) {
	status, stdout, _ := runCheck(t, checkFiles, "--config", "config.yaml", "-f", "vm.yaml", "--as", devBackend, "-o", "json")
	if status != cli.ExitFailed {
		t.Errorf("status %d, want %d", status, cli.ExitFailed)
	}
	var result struct {
		Objects []struct {
			Allowed bool
			Causes  []struct{ Code, Field string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Objects) != 1 || result.Objects[0].Allowed || result.Objects[0].Causes[0].Code != "EnvironmentMismatch" {
		t.Errorf("result = %+v", result)
	}
}

func TestCheckCountsWhatExists(t *testing.T) {
	for name, arguments := range map[string][]string{
		"by number": {"--vms", "8"},
		"by file":   {"--existing", "eight.yaml"},
	} {
		files := map[string]string{"config.yaml": checkConfig, "vm.yaml": machineManifest, "eight.yaml": ""}
		for i := range 8 {
			files["eight.yaml"] += "---\n" + strings.ReplaceAll(machineManifest, "a0000000", "b000000"+string(rune('0'+i)))
		}
		status, stdout, _ := runCheck(t, files, append([]string{"--config", "config.yaml", "-f", "vm.yaml", "--as", prodBackend}, arguments...)...)
		if status != cli.ExitFailed || !strings.Contains(stdout, "CapVMs") {
			t.Errorf("%s: status %d\n%s", name, status, stdout)
		}
	}
}

func TestWhatExistsWithoutANamespaceIsInThatOfTheMachinesAndWhatIsElsewhereTakesNoPlace(t *testing.T) {
	files := maps.Clone(checkFiles)
	files["golden.yaml"] = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: golden, labels: {ttlab.io/golden: "true"}}
`
	files["writes.yaml"] = strings.Replace(machineManifest, "{domain: {}}", "{domain: {}, volumes: [{name: disk, persistentVolumeClaim: {claimName: golden}}]}", 1)
	status, stdout, _ := runCheck(t, files, "--config", "config.yaml", "-f", "writes.yaml", "--as", prodBackend, "--existing", "golden.yaml")
	if status != cli.ExitFailed || !strings.Contains(stdout, "GoldenWritable") {
		t.Errorf("status %d:\n%s", status, stdout)
	}
	files["elsewhere.yaml"] = strings.NewReplacer("lab-a0000000", "other", "namespace: lab-vms", "namespace: other").Replace(machineManifest)
	status, stdout, stderr := runCheck(t, files, "--config", "config.yaml", "-f", "vm.yaml", "--as", prodBackend, "--vms", "7", "--existing", "elsewhere.yaml")
	if status != cli.ExitOK {
		t.Errorf("status %d:\n%s%s", status, stdout, stderr)
	}
}

func TestCheckJudgesUpdatesAndDeletes(t *testing.T) {
	files := map[string]string{"config.yaml": checkConfig, "vm.yaml": strings.ReplaceAll(machineManifest, "env: prod", "env: dev"), "old.yaml": machineManifest}
	status, stdout, _ := runCheck(t, files, "--config", "config.yaml", "-f", "vm.yaml", "--old", "old.yaml", "--operation", "UPDATE", "--as", prodBackend)
	if status != cli.ExitFailed || !strings.Contains(stdout, "EnvironmentImmutable") {
		t.Errorf("update: status %d\n%s", status, stdout)
	}
	status, stdout, _ = runCheck(t, files, "--config", "config.yaml", "-f", "old.yaml", "--operation", "DELETE", "--orphan", "--as", prodBackend)
	if status != cli.ExitFailed || !strings.Contains(stdout, "OrphaningDelete") {
		t.Errorf("delete: status %d\n%s", status, stdout)
	}
}

func TestCheckNamesEveryFaultOfUse(t *testing.T) {
	status, _, stderr := runCheck(t, map[string]string{"vm.yaml": "kind: [", "config.yaml": checkConfig + "x: 1"},
		"--config", "config.yaml", "-f", "vm.yaml", "--operation", "UPDATE", "-o", "xml", "--vms", "-1")
	if status != cli.ExitWrongUse {
		t.Errorf("status %d, want %d", status, cli.ExitWrongUse)
	}
	for _, want := range []string{`"x"`, "--as", "vm.yaml", "--old", "--output", "--vms"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%s is not in:\n%s", want, stderr)
		}
	}
}

func TestCheckSaysWhatIsNotReviewedAtAll(t *testing.T) {
	status, stdout, stderr := runCheck(t, map[string]string{
		"config.yaml": checkConfig, "other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: lab-vms}\n",
	}, "--config", "config.yaml", "-f", "other.yaml", "--as", prodBackend)
	if status != cli.ExitOK || !strings.Contains(stdout, "not reviewed") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// What is not there must not be called allowed: an empty file may be a step of a pipeline that failed.
func TestCheckRefusesInputThatItCannotJudgeAndNamesTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		want    string
		besides []string
	}{
		"an empty file":         {map[string]string{"vm.yaml": ""}, "-f vm.yaml: holds no manifest", nil},
		"comments alone":        {map[string]string{"vm.yaml": "---\n# none\n"}, "-f vm.yaml: holds no manifest", nil},
		"prose":                 {map[string]string{"vm.yaml": "hello"}, "-f vm.yaml: no manifests in YAML or JSON", nil},
		"no such file":          {nil, "-f vm.yaml: no such file or directory", nil},
		"a directory":           {map[string]string{"vm.yaml": machineManifest}, "--existing .: is a directory; name the files in it", []string{"--existing", "."}},
		"stored objects, empty": {map[string]string{"vm.yaml": machineManifest, "old.yaml": ""}, "--old old.yaml: holds no manifest", []string{"--operation", "UPDATE", "--old", "old.yaml"}},
		"stdin for two":         {nil, "stdin is named twice", []string{"-f", "-", "--existing", "-"}},
	} {
		files := map[string]string{"config.yaml": checkConfig}
		maps.Copy(files, c.files)
		status, stdout, stderr := runCheck(t, files, append([]string{"--config", "config.yaml", "-f", "vm.yaml", "--as", prodBackend}, c.besides...)...)
		if status != cli.ExitWrongUse || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, want %q in:\n%s%s", name, status, c.want, stdout, stderr)
		}
	}
}

func TestCheckTakesAnEmptyListOfWhatExists(t *testing.T) {
	files := map[string]string{"config.yaml": checkConfig, "vm.yaml": machineManifest, "none.yaml": "apiVersion: v1\nkind: List\nitems: []\n"}
	if status, _, stderr := runCheck(t, files, "--config", "config.yaml", "-f", "vm.yaml", "--as", prodBackend, "--existing", "none.yaml"); status != cli.ExitOK {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestEveryFaultIsALineThatNamesTheProgramAndWhatToWrite(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"several":               {nil, "webhook: --config is missing: name the configuration file\nwebhook: --as is missing: name the requester, such as system:serviceaccount:ttlab-dev:backend\nwebhook: -f is missing: name a file with manifests, or - for stdin\n"},
		"no number":             {[]string{"--vms", "eight"}, "webhook: --vms \"eight\": must be a whole number, such as 8; see 'webhook check --help'\n"},
		"a shortened flag":      {[]string{"--conf", "x"}, "webhook: unknown flag: --conf; is it --config?; see 'webhook check --help'\n"},
		"a directory as config": {[]string{"--config", ".", "-f", "vm.yaml", "--as", "alice"}, "webhook: --config .: reading the configuration: it is a directory; name the file in it\n"},
	} {
		if status, _, stderr := runCheck(t, checkFiles, c.arguments...); status != cli.ExitWrongUse || stderr != c.want {
			t.Errorf("%s: status %d, want\n%sgot\n%s", name, status, c.want, stderr)
		}
	}
}
