package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/test/browser"
)

// quietPass is a clean pass without anything to do, minutes after noon.
func quietPass(minute int) Pass {
	return Pass{StartedAt: noon.Add(time.Duration(minute) * time.Minute), DurationSeconds: 0.5, Summary: map[string]Count{"expired": {}}}
}

// busyPass had everything.
func busyPass(minute int, text string) Pass {
	pass := quietPass(minute)
	pass.ExitStatus, pass.Summary = 4, map[string]Count{"expired": {Done: 2, Kept: 1, Failed: 1}}
	pass.Holds = []Hold{{Direction: "orphan", Cause: "Braked", Reason: text}}
	pass.Failures = []Failure{{Direction: "expired", Session: text, Detail: text}}
	pass.Notices = []Notice{{What: text, Reason: text}}
	return pass
}

func added(passes ...Pass) Status {
	s := Status{Environment: "prod"}
	for _, pass := range passes {
		s.Add(pass)
	}
	return s
}

// finished is the log's line that ends a pass.
func finished(t *testing.T, environment string, pass Pass) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{"msg": FinishedMessage, "environment": environment, "pass": pass.Bounded()})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func pageOf(t *testing.T, h *History, now time.Time) string {
	t.Helper()
	var out bytes.Buffer
	if err := h.WritePage(&out, now); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// aDay is one pass a minute, of which one was busy and some did not run; the ConfigMap knows the last 30 alone.
func aDay(t *testing.T) *History {
	t.Helper()
	var passes []Pass
	var lines []string
	for minute := range 24 * 60 {
		pass := quietPass(minute)
		switch {
		case minute == 700:
			pass = busyPass(minute, "too many orphans")
		case minute >= 800 && minute < 830:
			continue
		}
		passes = append(passes, pass)
		lines = append(lines, `{"level":"info","msg":"starting"}`, finished(t, "prod", pass), finished(t, "dev", busyPass(minute, "another environment's")), "DIRECTION   SESSION")
	}
	h := NewHistory(added(passes...), time.Time{})
	if err := h.Read("reapjob.log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestThePageOfADayHasEachPassOnceAndTheTimeWithoutAny(t *testing.T) {
	h := aDay(t)
	text := pageOf(t, h, noon.Add(24*time.Hour))
	if len(h.Passes) != 24*60-30 || len(h.Broken) > 0 {
		t.Errorf("%d passes, broken %v", len(h.Passes), h.Broken)
	}
	for _, part := range []string{
		"Shown are 1410 passes that started from 2026-11-29T12:00:00Z to 2026-11-30T11:59:00Z: the last 30 that the status ConfigMap keeps, and those in reapjob.log",
		"610 passes with nothing to do", "99 passes with nothing to do", "700 passes with nothing to do",
		"No pass started for 31m0s", "Times without a pass: 1. Passes usually start every 1m0s.", "too many orphans", "exit status 4</a>, held back",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not on the page", part)
		}
	}
	if strings.Contains(text, "another environment") {
		t.Error("another environment's pass is on the page")
	}
}

func TestATimeWithoutAPassUpToNowIsShown(t *testing.T) {
	h := NewHistory(added(quietPass(0), quietPass(1), quietPass(2), quietPass(3)), time.Time{})
	if text := pageOf(t, h, noon.Add(time.Hour)); !strings.Contains(text, "No pass started for 57m0s") {
		t.Error("the page does not say that passes have stopped")
	}
	if text := pageOf(t, NewHistory(added(), time.Time{}), noon); !strings.Contains(text, "No pass has ever run") {
		t.Error("the page does not say that no pass ever ran")
	}
}

func TestPassesBeforeTheTimeThatIsAskedForAreLeftOut(t *testing.T) {
	h := NewHistory(added(quietPass(0), busyPass(1, "long ago"), quietPass(10)), noon.Add(5*time.Minute))
	if err := h.Read("log", strings.NewReader(finished(t, "prod", busyPass(2, "long ago")))); err != nil {
		t.Fatal(err)
	}
	if text := pageOf(t, h, noon.Add(11*time.Minute)); len(h.Passes) != 1 || strings.Contains(text, "long ago") {
		t.Errorf("passes: %+v", h.Passes)
	}
}

func TestALineThatEndsNoPassIsCountedAndTheTableOfStdoutIsPassedOver(t *testing.T) {
	h := NewHistory(added(quietPass(0)), time.Time{})
	lines := []string{"DIRECTION   SESSION", finished(t, "prod", quietPass(1)), `{"msg":"pass finished","environment":"prod"}`, `{"msg":"pass fin`}
	if err := h.Read("reapjob.log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	if len(h.Broken) != 1 || h.Broken[0].Lines != 2 || h.Broken[0].First != 3 {
		t.Errorf("broken: %+v", h.Broken)
	}
	if text := pageOf(t, h, noon); !strings.Contains(text, "reapjob.log: lines that could not be read: 2") {
		t.Error("the page does not say so")
	}
}

const hostile = `</li></ol></script><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`

func hostileHistory() *History {
	s := added(busyPass(0, hostile))
	s.Passes[0].Holds[0].Direction, s.Passes[0].Holds[0].Cause, s.Passes[0].Summary[hostile] = hostile, hostile, Count{Done: 1}
	s.DirectionTotals[hostile] = Total{Held: map[string]int{hostile: 1}}
	return NewHistory(s, time.Time{})
}

func TestThePageEscapesWhateverAConfigMapHolds(t *testing.T) {
	text := pageOf(t, hostileHistory(), noon)
	if strings.Contains(text, "<img") || strings.Count(text, "<script") != 1 || strings.Count(text, "</script>") != 1 {
		t.Error("the text is more than text")
	}
	if !strings.Contains(html.UnescapeString(text), `<img src=x onerror="document`) {
		t.Error("the text is not shown")
	}
}

func TestThePageNeedsNothingFromElsewhereAndItsLinksLeadSomewhere(t *testing.T) {
	text := pageOf(t, aDay(t), noon)
	for _, match := range regexp.MustCompile(`(?:src|href|action)\s*=\s*"([^"]*)"|url\(|@import|https?://`).FindAllStringSubmatch(text, -1) {
		id, local := strings.CutPrefix(match[1], "#")
		if !local || !strings.Contains(text, `id="`+id+`"`) {
			t.Errorf("the page refers to %s", match[0])
		}
	}
	for _, exit := range ExitStatuses() {
		if !strings.Contains(text, fmt.Sprintf(`id="exit-%d"`, exit)) {
			t.Errorf("exit status %d is not explained", exit)
		}
	}
	for _, cause := range Causes() {
		if !strings.Contains(text, `id="cause-`+cause+`"`) {
			t.Errorf("cause %s is not explained", cause)
		}
	}
}

func TestInABrowserTheDayIsShownAndSearched(t *testing.T) {
	text := pageOf(t, aDay(t), noon.Add(24*time.Hour))
	if shown := browser.Shown(browser.Open(t, text, "")); len(shown) != 5 {
		t.Errorf("%d entries are shown, want the busy pass, the time without any, and three with quiet ones", len(shown))
	}
	dom := browser.Open(t, text, "#search=braked+orphans")
	if shown := browser.Shown(dom); len(shown) != 1 || !strings.Contains(shown[0], "too many orphans") {
		t.Errorf("shown: %v", shown)
	}
}

func TestABrowserRunsNothingOfWhatAConfigMapHolds(t *testing.T) {
	dom := browser.Open(t, pageOf(t, hostileHistory(), noon), "")
	if strings.Contains(dom, "<title>owned") || strings.Contains(dom, "<img") || strings.Count(dom, "<script") != 1 {
		t.Error("the text is more than text")
	}
}

func TestInABrowserThePageIsUsedByKeyboardAndReadOnAPhone(t *testing.T) {
	window := browser.Start(t, pageOf(t, aDay(t), noon.Add(24*time.Hour)))
	window.ExpectKeyboard("too", "exit-4")
	window.ExpectPhone()
}
