package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestAMomentIsATimeOrHowLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"":                          {},
		"90m":                       now.Add(-90 * time.Minute),
		"7d":                        now.Add(-7 * 24 * time.Hour),
		"2026-11-29T15:00:00+09:00": time.Date(2026, 11, 29, 6, 0, 0, 0, time.UTC),
	} {
		if got, err := ParseMoment(value, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"d", "-1d", "1.5d", "99999d", "-1h", "2026-11-29", "now"} {
		if got, err := ParseMoment(value, now); err == nil {
			t.Errorf("%q: %v, want an error", value, got)
		}
	}
}

func TestProgressIsShownOnATerminalAlone(t *testing.T) {
	var terminal bytes.Buffer
	reader := newWatched(t.Context(), strings.NewReader(strings.Repeat("x", 1000)), "audit.log", 1000, &terminal)
	buffer := make([]byte, 250)
	for range 5 {
		// The last one is the end.
		_, _ = reader.Read(buffer)
	}
	if shown := terminal.String(); !strings.Contains(shown, "audit.log: 50%") || !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("shown: %q", shown)
	}
}
