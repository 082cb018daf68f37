package reap

import (
	"slices"
	"testing"

	"github.com/ttlab/vmwarden/internal/status"
)

func TestWhatAPassWritesIsWhatAReaderOfStatusesKnows(t *testing.T) {
	var directions []string
	for _, direction := range Directions() {
		directions = append(directions, string(direction))
	}
	if !slices.Equal(directions, status.Directions()) {
		t.Errorf("directions %v, the status knows %v", directions, status.Directions())
	}
	if causes := []string{string(Aborted), string(Fenced), string(Braked)}; !slices.Equal(causes, status.Causes()) {
		t.Errorf("causes %v, the status knows %v", causes, status.Causes())
	}
	if ends := []int{ExitClean, ExitCouldNotRun, ExitItemsFailed, ExitHeld}; !slices.Equal(ends, status.ExitStatuses()) {
		t.Errorf("exit statuses %v, the status knows %v", ends, status.ExitStatuses())
	}
}
