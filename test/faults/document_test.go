package faults

import (
	"os"
	"strings"
	"testing"
)

func TestEveryFaultHasARowInTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults() {
		if !strings.Contains(string(document), "\n| "+f.name+" |") {
			t.Errorf("docs/reliability.md has no row for %q", f.name)
		}
	}
}
