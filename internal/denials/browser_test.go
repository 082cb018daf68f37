package denials

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browse opens a page in a real browser, at a fragment, and gives what has become of the document.
func browse(t *testing.T, text, fragment string) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; make test-browser sees to it")
	}
	directory := t.TempDir()
	file := filepath.Join(directory, "denials.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{
		"--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--user-data-dir=" + filepath.Join(directory, "profile"),
		// Nothing of a page that needs no network is to come from there.
		"--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom",
	}
	if os.Getuid() == 0 {
		// Chromium has no sandbox for root, and the page is our own.
		arguments = append(arguments, "--no-sandbox")
	}
	var dom, said bytes.Buffer
	command := exec.CommandContext(t.Context(), program, append(arguments, "file://"+file+fragment)...)
	// It leaves children behind that would hold the pipes open.
	command.WaitDelay = time.Minute
	command.Stdout, command.Stderr = &dom, &said
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if !strings.Contains(dom.String(), "</html>") {
		t.Fatalf("the browser gave no document: %s\n%s", dom.String(), said.String())
	}
	return dom.String()
}

func twoDenials(t *testing.T) Report {
	t.Helper()
	return collected(t, Filter{}, []string{
		logged(noon), logged(noon, with("review", "2"), with("name", "lab-other"), with("codes", []string{"SessionMissing"}), with("message", "none")),
	})
}

// shownItems are the texts of the list's entries that are not hidden.
func shownItems(dom string) []string {
	var shown []string
	_, list, _ := strings.Cut(dom, `<ol id="denials">`)
	list, _, _ = strings.Cut(list, "</ol>")
	for _, item := range regexp.MustCompile(`(?s)<li([^>]*)>(.*?)</li>`).FindAllStringSubmatch(list, -1) {
		if !strings.Contains(item[1], "hidden") {
			shown = append(shown, item[2])
		}
	}
	return shown
}

func TestASearchInABrowserLeavesWhatHasEveryWord(t *testing.T) {
	dom := browse(t, page(t, twoDenials(t)), "#search=capvms+LAB-A0000000")
	if shown := shownItems(dom); len(shown) != 1 || !strings.Contains(shown[0], "CapVMs") {
		t.Errorf("shown: %v", shown)
	}
	if !strings.Contains(dom, "1 of 2 shown") {
		t.Error("the page does not say how many are shown")
	}
}

func TestWithoutASearchABrowserShowsEveryDenialAndTheSearch(t *testing.T) {
	dom := browse(t, page(t, twoDenials(t)), "")
	if shown := shownItems(dom); len(shown) != 2 {
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
	dom := browse(t, page(t, report), "")
	if strings.Contains(dom, "<title>owned") || strings.Contains(dom, "<img") || strings.Count(dom, "<script") != 1 {
		t.Error("the name is more than text")
	}
	if len(shownItems(dom)) != 1 {
		t.Error("the denial is not listed")
	}
}

// The browser dumps a document by a script of its own, so JavaScript cannot be off; the page's own is kept from running.
func TestWithoutJavaScriptABrowserShowsEveryDenialAndNoSearch(t *testing.T) {
	text := regexp.MustCompile(`script-src '[^']*'`).ReplaceAllString(page(t, twoDenials(t)), "script-src 'none'")
	dom := browse(t, text, "#search=capvms")
	if shown := shownItems(dom); len(shown) != 2 {
		t.Errorf("shown: %v", shown)
	}
	if !regexp.MustCompile(`<form[^>]*hidden`).MatchString(dom) {
		t.Error("a search that cannot work is shown")
	}
}
