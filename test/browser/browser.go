// Package browser opens pages in a real browser.
package browser

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Open opens a page in chromium, at a fragment, and gives what has become of the document. Where there is no chromium the test is skipped.
func Open(t *testing.T, text, fragment string) string {
	t.Helper()
	program, file, arguments := prepare(t, text)
	var dom, said bytes.Buffer
	command := exec.CommandContext(t.Context(), program, append(arguments, "--dump-dom", "file://"+file+fragment)...)
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

// Shown are the entries of a page's list that are not hidden.
func Shown(dom string) []string {
	var shown []string
	_, list, _ := strings.Cut(dom, `<ol id="entries"`)
	list, _, _ = strings.Cut(list, "</ol>")
	for _, item := range regexp.MustCompile(`(?s)<li([^>]*)>(.*?)</li>`).FindAllStringSubmatch(list, -1) {
		if !strings.Contains(item[1], "hidden") {
			shown = append(shown, item[2])
		}
	}
	return shown
}
