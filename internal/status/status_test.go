package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// huge is a pass that has everything in excess.
func huge(n int) Pass {
	text := strings.Repeat("長い", 5000)
	pass := Pass{StartedAt: noon.Add(time.Duration(n) * time.Minute), ExitStatus: 3, Summary: map[string]Count{"expired": {Failed: 500}}}
	for range 4 {
		pass.Holds = append(pass.Holds, Hold{Direction: "orphan", Cause: "Braked", Reason: text})
	}
	for range 500 {
		pass.Failures = append(pass.Failures, Failure{Session: text, Detail: text})
		pass.Notices = append(pass.Notices, Notice{What: text, Reason: text})
	}
	return pass
}

func TestAStatusStaysFarBelowWhatAConfigMapHolds(t *testing.T) {
	var s Status
	for n := range 100 {
		s.Add(huge(n))
	}
	content, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 1<<19 {
		t.Errorf("%d bytes, want at most half a MiB", len(content))
	}
	newest := s.Passes[0]
	if !newest.StartedAt.Equal(noon.Add(99*time.Minute)) || len(s.Passes) != maxPasses {
		t.Errorf("%d passes, the first of %s", len(s.Passes), newest.StartedAt)
	}
	if newest.FailuresLeftOut != 490 || newest.NoticesLeftOut != 490 {
		t.Errorf("left out: %d failures, %d notices, want 490 each", newest.FailuresLeftOut, newest.NoticesLeftOut)
	}
	if total := s.DirectionTotals["orphan"].Held["Braked"]; total != 400 || s.PassTotals[3] != 100 {
		t.Errorf("held %d times in %d passes, want 400 in 100", total, s.PassTotals[3])
	}
}

func TestTheLastCleanPassOutlivesTheListOfPasses(t *testing.T) {
	var s Status
	s.Add(Pass{StartedAt: noon})
	for n := range maxPasses + 1 {
		s.Add(huge(n + 1))
	}
	if s.LastClean == nil || !s.LastClean.Equal(noon) {
		t.Errorf("last clean pass: %v, want %s", s.LastClean, noon)
	}
}

func TestShortenKeepsCharactersWhole(t *testing.T) {
	for most := 3; most < 12; most++ {
		got := Shorten("日本語日本語", most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("at most %d bytes: %q", most, got)
		}
	}
	if got := Shorten("short", 5); got != "short" {
		t.Errorf("%q was cut", got)
	}
}

func TestTheTableTellsAnAgeAndWhatIsWrong(t *testing.T) {
	s := Status{Environment: "prod"}
	s.Add(Pass{StartedAt: noon})
	s.Add(Pass{StartedAt: noon.Add(time.Hour), ExitStatus: 4, Holds: []Hold{{Direction: "orphan", Cause: "Braked", Reason: "too many"}}})
	var text strings.Builder
	if err := s.WriteTable(&text, noon.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"orphan (Braked)", "too many", "the last pass was 1h0m0s ago (exit status 4)", "the last clean pass was 2h0m0s ago"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
}

// Ids and names are as a database has them.
func TestATerminalObeysNothingOfTheTable(t *testing.T) {
	const hostile = "a\x1b[2J\u202eb\n"
	s := Status{Environment: "prod"}
	s.Add(Pass{
		StartedAt: noon, ExitStatus: 4, Holds: []Hold{{Direction: hostile, Cause: hostile, Reason: hostile}},
		Failures: []Failure{{Direction: hostile, Session: hostile, Detail: hostile}}, Notices: []Notice{{What: hostile, Reason: hostile}},
	})
	var text strings.Builder
	if err := s.WriteTable(&text, noon); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\u202e") || strings.Contains(text.String(), "\nb") {
		t.Errorf("the table is %q", text.String())
	}
}
