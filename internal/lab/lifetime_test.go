package lab

import (
	"testing"
	"time"
)

func TestDeadlineIsStartPlusCeilingPlusGraceInUTC(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	start := time.Date(2026, 9, 12, 9, 0, 0, 999, tokyo)
	deadline := Lifetimes{Ceiling: 180 * time.Minute, DeadlineGrace: 15 * time.Minute}.Deadline(start)
	if got, want := FormatDeadline(deadline), "2026-09-12T03:15:00Z"; got != want {
		t.Errorf("deadline = %s, want %s", got, want)
	}
	parsed, err := ParseDeadline("2026-09-12T12:15:00+09:00")
	if err != nil || !parsed.Equal(deadline) {
		t.Errorf("ParseDeadline = %s, %v, want %s", parsed, err, deadline)
	}
}

func TestParseDeadlineRefusesWhatIsNoTime(t *testing.T) {
	for _, value := range []string{"", "soon", "2026-09-12", "1789182900", "2026-13-01T00:00:00Z"} {
		if _, err := ParseDeadline(value); err == nil {
			t.Errorf("ParseDeadline(%q): no error", value)
		}
	}
}
