package denials

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/test/browser"
)

func twoDenials(t *testing.T) Report {
	t.Helper()
	return collected(t, Filter{}, []string{
		logged(noon), logged(noon, with("review", "2"), with("name", "lab-other"), with("codes", []string{"SessionMissing"}), with("message", "none")),
	})
}

func TestASearchInABrowserLeavesWhatHasEveryWord(t *testing.T) {
	dom := browser.Open(t, written(t, twoDenials(t)), "#search=capvms+LAB-A0000000")
	if shown := browser.Shown(dom); len(shown) != 1 || !strings.Contains(shown[0], "CapVMs") {
		t.Errorf("shown: %v", shown)
	}
	if !strings.Contains(dom, "1 of 2 shown") {
		t.Error("the page does not say how many are shown")
	}
}

func TestWithoutASearchABrowserShowsEveryDenialAndTheSearch(t *testing.T) {
	dom := browser.Open(t, written(t, twoDenials(t)), "")
	if shown := browser.Shown(dom); len(shown) != 2 {
		t.Errorf("shown: %v", shown)
	}
	if regexp.MustCompile(`<form[^>]*hidden`).MatchString(dom) {
		t.Error("the search is hidden")
	}
}

func TestABrowserRunsNothingOfWhatANameHolds(t *testing.T) {
	const owned = `</li></ol></script><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`
	report := collected(t, Filter{}, []string{
		logged(noon, with("name", owned), with("requester", owned), with("message", owned), with("codes", []string{owned})),
	})
	dom := browser.Open(t, written(t, report), "")
	if strings.Contains(dom, "<title>owned") || strings.Contains(dom, "<img") || strings.Count(dom, "<script") != 1 {
		t.Error("the name is more than text")
	}
	if len(browser.Shown(dom)) != 1 {
		t.Error("the denial is not listed")
	}
}

// The browser dumps a document by a script of its own, so JavaScript cannot be off; the page's own is kept from running.
func TestWithoutJavaScriptABrowserShowsEveryDenialAndNoSearch(t *testing.T) {
	text := regexp.MustCompile(`script-src '[^']*'`).ReplaceAllString(written(t, twoDenials(t)), "script-src 'none'")
	dom := browser.Open(t, text, "#search=capvms")
	if shown := browser.Shown(dom); len(shown) != 2 {
		t.Errorf("shown: %v", shown)
	}
	if !regexp.MustCompile(`<form[^>]*hidden`).MatchString(dom) {
		t.Error("a search that cannot work is shown")
	}
}

func TestInABrowserThePageIsUsedByKeyboardAndReadOnAPhone(t *testing.T) {
	window := browser.Start(t, written(t, twoDenials(t)))
	window.ExpectKeyboard("SessionMissing", "code-SessionMissing")
	window.ExpectPhone()
}
