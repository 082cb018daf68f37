package e2e

import (
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/test/invariant"
	"github.com/ttlab/vmwarden/test/lab"
)

// record makes the databases note every change of their sessions until the test ends.
func record(t *testing.T) *lab.Recording {
	t.Helper()
	recording, err := shared.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, environment := range lab.Environments {
		t.Cleanup(func() { query(t, environment, invariant.StopRecording) })
	}
	return recording
}

// expectInvariants judges all that was recorded.
func expectInvariants(t *testing.T, recording *lab.Recording) {
	t.Helper()
	verdict, err := recording.Verdict(t.Context(), lab.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := verdict.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if len(verdict.Violations) > 0 {
		t.Errorf("invariants were broken:\n%s", text.String())
	}
	if verdict.Machines == 0 || verdict.Deletions == 0 || verdict.Changes == 0 {
		t.Errorf("too little happened to be judged: %+v", verdict)
	}
	t.Log(text.String())
}
