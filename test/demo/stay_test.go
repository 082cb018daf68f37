package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/lab"
)

// TestWhatThePlaygroundOffersToTryWorks runs every command that `make playground` prints, as the shell would that sourced its file, after
// the last chapter of the story.
func TestWhatThePlaygroundOffersToTryWorks(t *testing.T) {
	kubectl, err := binaries.LocateKubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(t.Context(), os.Stderr, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := reaping(t.Context(), &story{lab: l, out: io.Discard}); err != nil {
		t.Fatal(err)
	}
	environment, err := furnish(l, kubectl)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for _, try := range tries {
		command := exec.CommandContext(t.Context(), "bash", "-c", "source "+environment+"\n"+try)
		command.Dir = directory
		output, err := command.CombinedOutput()
		said := string(output)
		switch {
		case strings.Contains(try, " delete "):
			// That it is denied is what there is to see.
			if err == nil || !strings.Contains(said, "EnvironmentForeign") {
				t.Errorf("%s: %v, want a denial\n%s", try, err, said)
			}
		case err != nil, said == "" && !strings.Contains(try, ">"):
			t.Errorf("%s: %v\n%s", try, err, said)
		}
	}
}
