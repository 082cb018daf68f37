package documents

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// translations are the pages that exist in Japanese too.
var translations = map[string]string{
	"README.md":       "README.ja.md",
	"docs/denials.md": "docs/ja/denials.md",
	"docs/runbook.md": "docs/ja/runbook.md",
}

func TestATranslationHasTheHeadingsOfItsOriginal(t *testing.T) {
	for original, translation := range translations {
		if diff := cmp.Diff(outline(t, original), outline(t, translation)); diff != "" {
			t.Errorf("headings (-%s +%s):\n%s", original, translation, diff)
		}
	}
}

// outline gives a page's headings by their level; the name of a code, an alert or the project stands in every language.
func outline(t *testing.T, page string) []string {
	t.Helper()
	content, err := read(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, h := range Headings(string(content)) {
		line := strings.Repeat("#", h.Level)
		if unchanging.MatchString(h.Text) {
			line += " " + h.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// unchanging is a word that no translation changes: it has a capital within, or is the project's.
var unchanging = regexp.MustCompile(`^([A-Z]\w*[a-z][A-Z]\w*|vmwarden)$`)

func TestATranslationHasTheCommandsOfItsOriginal(t *testing.T) {
	for original, translation := range translations {
		if diff := cmp.Diff(commands(t, original), commands(t, translation)); diff != "" {
			t.Errorf("blocks of sh (-%s +%s):\n%s", original, translation, diff)
		}
	}
}

func commands(t *testing.T, page string) []string {
	t.Helper()
	blocks, err := Blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, block := range blocks {
		if block.Language == "sh" {
			texts = append(texts, block.Text)
		}
	}
	if len(texts) == 0 {
		t.Errorf("%s has no block of sh", page)
	}
	return texts
}

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	existing := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	for _, file := range files(t, "_test.go") {
		content, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(content, -1) {
			existing[string(match[1])] = true
		}
	}
	named := 0
	for _, page := range files(t, ".md") {
		content, err := read(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, mention := range regexp.MustCompile("`(Test[A-Z]\\w*)`").FindAllSubmatch(content, -1) {
			named++
			if !existing[string(mention[1])] {
				t.Errorf("%s names %s, which is no test", page, mention[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test")
	}
}

func files(t *testing.T, suffix string) []string {
	t.Helper()
	names, err := Files(suffix)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
