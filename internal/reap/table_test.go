package reap

import (
	"strings"
	"testing"
)

// Ids and names are as a database has them.
func TestATerminalObeysNothingOfAPlan(t *testing.T) {
	const hostile = "a\x1b[2J\u202eb\n"
	plan := Plan{
		Actions: []Action{{Direction: Ghost, Session: hostile, Reason: hostile, Objects: []Object{{Kind: VirtualMachine, Name: hostile}}}},
		Holds:   []Hold{{Direction: Orphan, Cause: Aborted, Reason: hostile}},
		Notices: []Notice{{What: hostile, Reason: hostile}},
	}
	var text strings.Builder
	if err := plan.Document("prod").WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\u202e") || strings.Count(text.String(), `a\x1b[2J\u202eb\n`) != 6 {
		t.Errorf("the table is %q", text.String())
	}
}
