package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
)

const denialLine = `{"level":"info","ts":"2026-11-29T12:00:00Z","msg":"admission denied","review":"1","codes":["CapVMs"],"operation":"CREATE",` +
	`"kind":"VirtualMachine","namespace":"lab-vms","name":"lab-a0000000","environment":"dev","requester":"alice","message":"CapVMs: full"}` + "\n"

// runDenials runs denials with the given stdin and gives its status and output.
func runDenials(t *testing.T, stdin string, arguments ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	command := newCommand(serve)
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	status = cli.Run(command, append([]string{"denials"}, arguments...), &errors)
	return status, out.String(), errors.String()
}

func TestDenialsReadsStdinWithoutAFileAndForADash(t *testing.T) {
	for _, arguments := range [][]string{nil, {"-"}} {
		status, stdout, stderr := runDenials(t, denialLine, arguments...)
		if status != cli.ExitOK || !strings.Contains(stdout, "lab-vms/virtualmachine/lab-a0000000") || stderr != "" {
			t.Errorf("%v: status %d\n%s%s", arguments, status, stdout, stderr)
		}
	}
}

func TestAFileThatCannotBeReadIsNamedAndTheOthersAreRead(t *testing.T) {
	good := filepath.Join(t.TempDir(), "webhook.log")
	if err := os.WriteFile(good, []byte(denialLine), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runDenials(t, "", "missing.log", t.TempDir(), good)
	if status != cli.ExitFailed || !strings.Contains(stderr, "missing.log") || !strings.Contains(stderr, "is a directory") || !strings.Contains(stdout, "CapVMs") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

func TestWhatAReportCannotBeTrustedForIsOnStderr(t *testing.T) {
	newer := strings.NewReplacer("CapVMs", "CapGPU", `"review":"1"`, `"review":"2"`, "12:00", "13:00").Replace(denialLine)
	status, stdout, stderr := runDenials(t, "{broken\n"+denialLine+newer, "--limit", "1")
	if status != cli.ExitOK || strings.Contains(stdout, "CapVMs") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	for _, part := range []string{"stdin", "line 1", "1 older denials", `"CapGPU"`} {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr does not mention %s:\n%s", part, stderr)
		}
	}
}

func TestDenialsNamesEveryFaultOfUse(t *testing.T) {
	status, stdout, stderr := runDenials(t, denialLine, "--since", "yesterday", "--until", "-1h", "--code", "CapVM", "--group-by", "hour", "-o", "xml", "--limit", "0")
	if status != cli.ExitWrongUse || stdout != "" {
		t.Errorf("status %d\n%s", status, stdout)
	}
	for _, fault := range []string{"--since", "--until", "--code", "--group-by", "--output", "--limit"} {
		if !strings.Contains(stderr, fault) {
			t.Errorf("%s is not in:\n%s", fault, stderr)
		}
	}
	for _, arguments := range [][]string{{"-o", "html", "--group-by", "code"}, {"--since", "1h", "--until", "2h"}} {
		if status, _, _ := runDenials(t, denialLine, arguments...); status != cli.ExitWrongUse {
			t.Errorf("%v: status %d, want %d", arguments, status, cli.ExitWrongUse)
		}
	}
}

// An empty table must not look as if a log without denials had been read.
func TestAFileThatIsNoneOfTheLogsIsNamedAndNoDenialsAreSaidToBeNone(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		strange bool
	}{
		"a configuration":      {checkConfig, true},
		"another program's":    {`{"time":"2026-11-29T12:00:00Z","message":"hello"}` + "\n", true},
		"nothing":              {"", true},
		"an audit log":         {`{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"get"}` + "\n", false},
		"a replica's that ran": {`{"level":"info","ts":"2026-11-29T12:00:00Z","msg":"starting"}` + "\n", false},
	} {
		status, _, stderr := runDenials(t, c.content)
		if status != cli.ExitOK || strings.Contains(stderr, "right file") != c.strange || !strings.Contains(stderr, "no denial that was asked for") {
			t.Errorf("%s: status %d, want strange: %t\n%s", name, status, c.strange, stderr)
		}
	}
}
