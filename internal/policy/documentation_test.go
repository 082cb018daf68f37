package policy

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestEveryCodeHasASectionAndEverySectionACode(t *testing.T) {
	content, err := os.ReadFile("../../docs/denials.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, match := range regexp.MustCompile(`(?m)^## (\S+)$`).FindAllSubmatch(content, -1) {
		sections = append(sections, string(match[1]))
	}
	for _, code := range Codes() {
		if !slices.Contains(sections, string(code)) {
			t.Errorf("docs/denials.md has no section for %s", code)
		}
	}
	for _, section := range sections {
		if !slices.Contains(Codes(), Code(section)) {
			t.Errorf("docs/denials.md has a section for %s, which is no code", section)
		}
	}
}
