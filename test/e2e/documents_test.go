package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/documents"
	"github.com/ttlab/vmwarden/test/lab"
)

// TestEveryDocumentedCommandRuns runs the commands of docs/reaping.md in the lab, after a first pass, so that each is clean.
func TestEveryDocumentedCommandRuns(t *testing.T) {
	clean(t)
	_, first := reapjob(t, "prod", "run")
	expectExit(t, first, reap.ExitClean)
	log := write(t, "reapjob.log", first.Stderr)
	lines, err := documents.Lines("docs/reaping.md", "sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		arguments, found := strings.CutPrefix(line, "reapjob ")
		if !found {
			t.Errorf("%q is not a command that this test can run", line)
			continue
		}
		// The lab has its own configuration and names the environment itself.
		arguments = strings.Replace(arguments, " --config /etc/vmwarden/config.yaml --environment prod", "", 1)
		arguments, _, _ = strings.Cut(strings.Replace(arguments, "reapjob.log", log, 1), " > ")
		run, err := shared.Reapjob(t.Context(), "prod", lab.Config, strings.Fields(arguments)...)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != reap.ExitClean {
			t.Errorf("%s: exit status %d\n%s", line, run.Status, run.Stderr)
		}
	}
}

// TestEveryCommandOfTheReadmeRuns runs what the README shows of both programs, on its own examples and, for what needs a cluster, on the
// lab. make and helm are run by other tests; of serve, which would not end, the flags are checked.
func TestEveryCommandOfTheReadmeRuns(t *testing.T) {
	clean(t)
	lines, err := documents.Lines("README.md", "sh")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	says := map[string]string{
		"bin/webhook check": "allowed", "bin/webhook denials": "EnvironmentForeign", "bin/webhook trace": "deletion asked", "bin/webhook serve": "--shutdown-delay",
		"bin/webhook caps": "namespace lab-vms", "bin/reapjob plan": "0 planned", "bin/reapjob run": "0 failed", "bin/reapjob status": "last pass",
	}
	places := strings.NewReplacer("bin/", "", "docs/examples/", filepath.Join(documents.Root(), "docs", "examples")+"/")
	for _, line := range lines {
		if !strings.HasPrefix(line, "bin/") {
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		command, want := strings.Join(strings.Fields(line)[:2], " "), cli.ExitOK
		if strings.HasSuffix(command, " serve") {
			line, want = line+" --shutdown-delay=-1s", cli.ExitWrongUse
		}
		status, said := s.run(t, places.Replace(line))
		if status != want || says[command] == "" || !strings.Contains(said, says[command]) {
			t.Errorf("%s: exit status %d, want %d and %q in\n%s", line, status, want, says[command], said)
		}
		delete(says, command)
	}
	if len(says) > 0 {
		t.Errorf("the README does not show %v", says)
	}
}
