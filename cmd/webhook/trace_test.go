package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
)

// The line of a deletion names no session: it is told only where the machine's name is known.
const (
	tracedSession  = "a0000000-0000-4000-8000-000000000001"
	tracedCreation = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete","verb":"create",` +
		`"user":{"username":"system:serviceaccount:ttlab-prod:backend"},"objectRef":{"resource":"virtualmachines","namespace":"lab-vms","name":"lab-a0000000"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-29T12:00:00Z","stageTimestamp":"2026-11-29T12:00:00Z",` +
		`"annotations":{"validate.vmwarden.io/decision":"allow","validate.vmwarden.io/session":"` + tracedSession + `"}}` + "\n"
	tracedDeletion = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"2","stage":"ResponseComplete","verb":"delete",` +
		`"user":{"username":"system:serviceaccount:ttlab-prod:reaper"},"objectRef":{"resource":"virtualmachines","namespace":"lab-vms","name":"lab-a0000000"},` +
		`"responseStatus":{"code":200,"status":"Success"},"requestReceivedTimestamp":"2026-11-29T13:00:00Z","stageTimestamp":"2026-11-29T13:00:00Z"}` + "\n"
)

// runTrace runs trace with the given stdin and gives its status and output.
func runTrace(t *testing.T, stdin string, arguments ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	command := newCommand(serve)
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	status = cli.Run(command, append([]string{"trace"}, arguments...), &errors)
	return status, out.String(), errors.String()
}

func logFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	var file bytes.Buffer
	if strings.HasSuffix(name, ".gz") {
		zipped := gzip.NewWriter(&file)
		if _, err := zipped.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		file.WriteString(content)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTraceReadsFilesInAnyOrderAndAgainForANameThatItLearned(t *testing.T) {
	for _, asked := range []string{tracedSession, "lab-a0000000"} {
		status, stdout, stderr := runTrace(t, "", asked, logFile(t, "audit.log", tracedDeletion), logFile(t, "audit-1.log.gz", tracedCreation))
		if status != cli.ExitOK || stderr != "" {
			t.Errorf("%s: status %d\n%s", asked, status, stderr)
		}
		for _, part := range []string{"by system:serviceaccount:ttlab-prod:backend", "by system:serviceaccount:ttlab-prod:reaper", "answer to the deletion", "[audit log]"} {
			if !strings.Contains(stdout, part) {
				t.Errorf("%s: %q is not in\n%s", asked, part, stdout)
			}
		}
	}
}

func TestTraceReadsStdinOnceAndSaysWhatThatMayCost(t *testing.T) {
	for _, arguments := range [][]string{{tracedSession}, {tracedSession, "-"}} {
		status, stdout, _ := runTrace(t, tracedCreation+tracedDeletion, arguments...)
		if status != cli.ExitOK || !strings.Contains(stdout, "answer to the deletion") || !strings.Contains(stdout, "stdin is read once") {
			t.Errorf("%v: status %d\n%s", arguments, status, stdout)
		}
	}
}

func TestTraceOfNothingSaysWhatWasSearchedAndHasAStatusOfItsOwn(t *testing.T) {
	file := logFile(t, "audit.log", tracedCreation)
	status, stdout, stderr := runTrace(t, "", "lab-b0000000", file)
	if status != exitNoTrace || stdout != "" || !strings.Contains(stderr, `"lab-b0000000"`) || !strings.Contains(stderr, file+" (1 lines)") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	// What could not be read may be where it was.
	if status, _, stderr := runTrace(t, "", "lab-b0000000", file, "missing.log"); status != cli.ExitFailed || !strings.Contains(stderr, "missing.log") {
		t.Errorf("with a file that is missing: status %d\n%s", status, stderr)
	}
	if status, stdout, _ := runTrace(t, "", "lab-a0000000", "missing.log", file); status != cli.ExitFailed || !strings.Contains(stdout, "created") {
		t.Errorf("found, with a file that is missing: status %d\n%s", status, stdout)
	}
}

func TestTraceCountsBrokenLinesOnStderr(t *testing.T) {
	status, _, stderr := runTrace(t, tracedCreation+"{broken\n", "lab-a0000000")
	if status != cli.ExitOK || !strings.Contains(stderr, "stdin: lines that could not be read: 1, the first is line 2") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestTraceNamesEveryFaultOfUse(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		mention   []string
	}{
		{[]string{"-o", "csv", "--kubeconfig", "x"}, []string{"name a session", "--output", "--kubeconfig"}},
		{[]string{"lab-a0000000", "--config", "missing.yaml"}, []string{"missing.yaml"}},
		{[]string{"lab-a0000000", "--offline", "--kubeconfig", "x", "--config", "missing.yaml"}, []string{"--kubeconfig", "missing.yaml"}},
	} {
		status, stdout, stderr := runTrace(t, tracedCreation, c.arguments...)
		if status != cli.ExitWrongUse || stdout != "" {
			t.Errorf("%v: status %d\n%s", c.arguments, status, stdout)
		}
		for _, mention := range c.mention {
			if !strings.Contains(stderr, mention) {
				t.Errorf("%v: %s is not in\n%s", c.arguments, mention, stderr)
			}
		}
	}
}

func TestTraceAsksNoClusterOfflineAndTakesWhatTheConfigurationTells(t *testing.T) {
	const reaper = "environments:\n- {name: prod, backends: [{namespace: ttlab-prod, name: backend}], reaper: {namespace: ttlab-prod, name: reaper}}\n"
	config := logFile(t, "config.yaml", "apiVersion: config.vmwarden.io/v1alpha1\nkind: WardenConfig\nvmNamespace: lab-vms\n"+reaper)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	status, stdout, stderr := runTrace(t, tracedCreation+tracedDeletion, "lab-a0000000", "--config", config, "--offline")
	if status != cli.ExitOK || !strings.Contains(stdout, "as a Reaper") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if status, _, stderr := runTrace(t, "", "lab-a0000000", "--config", config); status != cli.ExitWrongUse || !strings.Contains(stderr, "--offline") {
		t.Errorf("without a cluster: status %d\n%s", status, stderr)
	}
}

func TestOfATraceWithoutAReadableLogOnlyThatIsSaid(t *testing.T) {
	status, stdout, stderr := runTrace(t, "", tracedSession, "missing.log")
	if status != cli.ExitFailed || stdout != "" || stderr != "webhook: missing.log: no such file or directory\n" {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}
