package invariant

import (
	"os"
	"strings"
	"testing"
)

func TestEveryInvariantHasARowInTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Invariants() {
		if !strings.Contains(string(document), "\n| `"+name+"` |") {
			t.Errorf("docs/reliability.md has no row for %s", name)
		}
	}
}
