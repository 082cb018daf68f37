package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/test/lab"
)

func expectInvariants(t *testing.T, recording *lab.Recording, interruptions []time.Time) {
	t.Helper()
	verdict, err := recording.Verdict(t.Context(), configuration, interruptions)
	must(t, err)
	var text strings.Builder
	must(t, verdict.WriteText(&text))
	if len(verdict.Violations) > 0 {
		t.Errorf("invariants were broken:\n%s", text.String())
	}
	if verdict.Machines == 0 || verdict.Deletions == 0 || verdict.Changes == 0 {
		t.Errorf("too little happened to be judged: %+v", verdict)
	}
	t.Log(text.String())
}
