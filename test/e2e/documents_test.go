package e2e

import (
	"strings"
	"testing"

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
