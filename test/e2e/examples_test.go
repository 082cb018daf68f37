package e2e

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// exampleSession is the session that examples name; its machine is lab-a0000000.
const exampleSession = "a0000000-0000-4000-8000-000000000001"

// helpOf is what a command's --help prints.
func helpOf(t *testing.T, command ...string) string {
	t.Helper()
	run, err := shared.Binary(t.Context(), command[0], append(command[1:], "--help")...)
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, run, cli.ExitOK)
	return run.Stdout
}

// commandsOf are the commands that a program's --help lists, but for help itself.
func commandsOf(t *testing.T, program string) []string {
	t.Helper()
	_, list, _ := strings.Cut(helpOf(t, program), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			names = append(names, name)
		}
	}
	if len(names) < 4 {
		t.Fatalf("%s has only the commands %v", program, names)
	}
	return names
}

func examplesOf(t *testing.T, program, command string) []string {
	t.Helper()
	_, list, found := strings.Cut(helpOf(t, program, command), "Examples:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	if !found || list == "" {
		t.Errorf("%s %s --help has no examples", program, command)
	}
	var lines []string
	for line := range strings.Lines(list) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// stage is a directory with what examples name: files, a home, and the programs on its PATH.
type stage struct {
	directory string
	// databases are how a reaper connects, by environment.
	databases map[string]string
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{directory: t.TempDir(), databases: map[string]string{}}
	for _, environment := range lab.Environments {
		s.databases[environment] = shared.ReaperURL(environment)
	}
	audit, err := os.ReadFile(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(ownLogs(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write(audit); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	_, pass := reapjob(t, "prod", "run")
	_, other := reapjob(t, "dev", "run")
	machine := encodeJSON(t, object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('W', 9)}))
	for name, content := range map[string]string{
		"config.yaml": lab.Config, "etc/config.yaml": lab.Config, "vm.yaml": string(machine), "new.yaml": string(machine), "stored.yaml": string(machine),
		"audit.log": string(audit), "audit-1.log.gz": zipped.String(), "webhook-1.log": string(own), "reapjob.log": pass.Stderr, "reapjob-1.log.gz": other.Stderr,
		"tls/tls.crt": "", "tls/tls.key": "", ".zsh/completions/x": "", ".config/fish/completions/x": "", ".local/share/bash-completion/completions/x": "",
	} {
		s.write(t, name, content)
	}
	// What a cluster with the webhook in it would answer.
	s.write(t, "bin/kubectl", "#!/bin/sh\ncase \"$*\" in *logs*) cat \"$HOME/webhook-1.log\" ;; *) cat \"$HOME/vm.yaml\" ;; esac\n")
	for _, path := range []string{"kubeconfig", ".kube/config"} {
		path = filepath.Join(s.directory, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := shared.ControlPlane.WriteKubeconfig(path, shared.Admin); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s stage) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// run runs a line in bash and gives its exit status and what it said.
func (s stage) run(t *testing.T, line string) (status int, said string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line)
	command.Dir = s.directory
	environment := "prod"
	if strings.Contains(line, "--environment dev") {
		environment = "dev"
	}
	command.Env = []string{
		"HOME=" + s.directory, "KUBECONFIG=" + filepath.Join(s.directory, "kubeconfig"), "DATABASE_URL=" + s.databases[environment],
		"PATH=" + filepath.Join(s.directory, "bin") + ":" + shared.BinaryDir() + ":" + os.Getenv("PATH"),
	}
	output, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// TestEveryExampleOfHelpRuns runs what every --help shows, in bash, on the lab. Of serve, which would not end, it checks that there is nothing
// to say against its flags but what is added to them.
func TestEveryExampleOfHelpRuns(t *testing.T) {
	clean(t)
	open(t, "prod", exampleSession)
	insert(t, "prod", running(exampleSession))
	s := newStage(t)
	places := strings.NewReplacer("/etc/vmwarden/config.yaml", "etc/config.yaml", "/etc/vmwarden/tls", "tls", "/var/log/kubernetes/", "")
	for _, program := range []string{"webhook", "reapjob"} {
		for _, command := range commandsOf(t, program) {
			for _, example := range examplesOf(t, program, command) {
				line, allowed := places.Replace(example), []int{cli.ExitOK}
				if command == "check" {
					// It judges what the example shows.
					allowed = append(allowed, cli.ExitFailed)
				}
				if strings.Contains(line, "jq") && !programExists("jq") {
					line = regexp.MustCompile(`\| jq .*`).ReplaceAllString(line, "")
				}
				if command == "serve" {
					line, allowed = line+" --shutdown-delay=-1s", []int{cli.ExitWrongUse}
				}
				status, said := s.run(t, line)
				if !slices.Contains(allowed, status) {
					t.Errorf("%s: exit status %d\n%s", example, status, said)
				}
				if command == "serve" && said != "webhook: --shutdown-delay -1s: must not be negative\n" {
					t.Errorf("%s: there is more to say against it:\n%s", example, said)
				}
			}
		}
	}
}

func programExists(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// bash-completion's part, which finds out what was typed; the rest is the script's own.
const completing = `_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; "__start_$1"; printf '%s\n' "${COMPREPLY[@]}"; }
`

func TestBashCompletesCommandsFlagsAndTheValuesThatTheyTake(t *testing.T) {
	s := newStage(t)
	for line, want := range map[string]string{
		"webhook den": "denials", "webhook denials --code CapV": "CapVMs", "webhook denials --group-by d": "day", "webhook denials -o h": "html",
		"reapjob status -o h": "html", "reapjob run --config config.yaml --environment p": "prod", "reapjob run --release-brake g": "ghost",
		"webhook check --oper": "--operation", "webhook completion z": "zsh",
	} {
		program, _, _ := strings.Cut(line, " ")
		status, said := s.run(t, "source <("+program+" completion bash)\n"+completing+"complete_line "+line+" 2>/dev/null")
		if status != 0 || !slices.Contains(strings.Fields(said), want) {
			t.Errorf("%s: completed to %q, want %s (exit status %d)", line, said, want, status)
		}
	}
}
