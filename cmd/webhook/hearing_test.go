package main

import (
	"testing"
	"time"

	"github.com/ttlab/vmwarden/internal/config"
)

func TestAReplicaThatTheAPIServerDoesNotAnswerIsNotReady(t *testing.T) {
	for _, c := range []struct {
		silence   time.Duration
		heard     bool
		uncertain config.WhenUncertain
		ready     bool
	}{
		{0, false, config.DenyWhenUncertain, false},
		{time.Second, true, config.DenyWhenUncertain, true},
		{longestSilence, true, config.DenyWhenUncertain, true},
		{longestSilence + time.Second, true, config.DenyWhenUncertain, false},
		// Where it is to admit what it cannot count, it goes on.
		{longestSilence + time.Second, true, config.AllowWhenUncertain, true},
		{0, false, config.AllowWhenUncertain, false},
	} {
		err := hearing(func() (time.Duration, bool) { return c.silence, c.heard }, c.uncertain)(nil)
		if (err == nil) != c.ready {
			t.Errorf("silence %s, heard %t, %s: %v, want ready %t", c.silence, c.heard, c.uncertain, err, c.ready)
		}
	}
}
