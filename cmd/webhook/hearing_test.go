package main

import (
	"testing"
	"time"
)

func TestAReplicaThatTheAPIServerDoesNotAnswerIsNotReady(t *testing.T) {
	for _, c := range []struct {
		silence time.Duration
		heard   bool
		ready   bool
	}{
		{0, false, false},
		{time.Second, true, true},
		{longestSilence, true, true},
		{longestSilence + time.Second, true, false},
	} {
		err := hearing(func() (time.Duration, bool) { return c.silence, c.heard })(nil)
		if (err == nil) != c.ready {
			t.Errorf("silence %s, heard %t: %v, want ready %t", c.silence, c.heard, err, c.ready)
		}
	}
}
