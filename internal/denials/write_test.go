package denials

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/policy"
)

// hostile is a name as somebody might sign in by or give to an object that is denied.
const hostile = "=cmd|'/c calc'!A1\x1b[2J\u202e</script><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}"

func hostileReport(t *testing.T) Report {
	t.Helper()
	return collected(t, Filter{}, []string{logged(noon,
		with("codes", []string{"CapVMs", hostile}), with("requester", hostile), with("requesterKind", hostile), with("name", hostile), with("namespace", ""),
		with("session", hostile), with("environment", hostile), with("message", hostile), with("review", hostile), with("kind", hostile))})
}

func TestATerminalIsToldNothingThatItWouldObey(t *testing.T) {
	var out bytes.Buffer
	for _, by := range []string{"", "requester"} {
		if err := hostileReport(t).WriteTable(&out, by); err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") || !strings.Contains(out.String(), `\x1b[2J\u202e`) {
		t.Errorf("%q", out.String())
	}
}

func TestASpreadsheetTakesNoCellForAFormula(t *testing.T) {
	for _, by := range []string{"", "code", "requester"} {
		var out bytes.Buffer
		if err := hostileReport(t).WriteCSV(&out, by); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) < 2 {
			t.Fatalf("by %q: %d rows", by, len(rows))
		}
		for _, row := range rows {
			for _, cell := range row {
				if strings.HasPrefix(cell, "=") {
					t.Errorf("by %q: cell %q", by, cell)
				}
			}
		}
	}
}

func TestJSONGivesBackEveryNameAsItIs(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport(t).WriteJSON(&out, ""); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Denials []Denial
		Read    map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Denials) != 1 || read.Denials[0].Requester != hostile || read.Denials[0].Name != hostile {
		t.Errorf("%+v", read)
	}
}

func TestAnEmptyReportHasListsAndNoNulls(t *testing.T) {
	for _, by := range append(Groupings(), "") {
		var out bytes.Buffer
		if err := collected(t, Filter{}).WriteJSON(&out, by); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "null") {
			t.Errorf("by %q: %s", by, out.String())
		}
	}
}

func written(t *testing.T, report Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.WritePage(&out, Filter{Since: noon}, noon); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestThePageEscapesEveryName(t *testing.T) {
	text := written(t, hostileReport(t))
	for _, tag := range []string{"<script>alert", "<img", "onerror=alert(1)>"} {
		if strings.Contains(text, tag) {
			t.Errorf("%s is on the page", tag)
		}
	}
	if strings.Count(text, "</script>") != 1 || strings.Count(text, "<script") != 1 {
		t.Error("there is more than one script on the page")
	}
	if !strings.Contains(html.UnescapeString(text), "<img src=x onerror=alert(1)>") {
		t.Error("the name is not shown as text")
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	text := written(t, collected(t, Filter{}, []string{logged(noon)}))
	for _, match := range regexp.MustCompile(`(?:src|href|action)\s*=\s*"([^"]*)"|url\(|@import|https?://`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[1], "#") {
			t.Errorf("the page refers to %s", match[0])
		}
	}
}

func TestThePageExplainsEachCodeByTheDocumentation(t *testing.T) {
	for _, code := range policy.Codes() {
		explanation := explain(string(code))
		if len(explanation.Paragraphs) < 3 {
			t.Errorf("%s: %d paragraphs, want what it is, an example and what to do", code, len(explanation.Paragraphs))
			continue
		}
		for _, paragraph := range explanation.Paragraphs {
			for _, span := range paragraph.Spans {
				if strings.ContainsAny(span.Text, "`#") || strings.Contains(span.Text, "**") || strings.Contains(span.Text, "](") {
					t.Errorf("%s: markup is left in %q", code, span.Text)
				}
			}
		}
	}
	text := written(t, collected(t, Filter{}, []string{logged(noon, with("codes", []string{"RequesterUnknown", "CapGPU"}))}))
	for _, part := range []string{`id="code-RequesterUnknown"`, "<strong>and</strong> name", "<code>environments[].backends</code>", "a newer one wrote the log"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not contain %s", part)
		}
	}
	if strings.Contains(text, `id="code-GoldenWritable"`) {
		t.Error("the page explains a code that it does not list")
	}
}

func TestThePageSaysWhatItDoesNotKnow(t *testing.T) {
	report := collected(t, Filter{}, []string{logged(noon), "broken"})
	report.Read.LeftOut, report.Read.RememberedFrom = 7, noon
	text := written(t, report)
	for _, part := range []string{"the first is line 2", "7 older denials are left out", "There was no audit log", "before 2026-11-29T12:00:00Z may not be known"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not contain %q", part)
		}
	}
}
