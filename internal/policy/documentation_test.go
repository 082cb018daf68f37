package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var (
	codeHeading   = regexp.MustCompile(`^[A-Za-z]+$`)
	templateValue = regexp.MustCompile(`\\\{\\\{\\\.[A-Za-z]+\\\}\\\}`)
)

// sectionsOf gives the sections of a page whose heading is one word of Latin letters, as a code is, with their text.
func sectionsOf(t *testing.T, page string) (names []string, texts map[string]string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, section := range strings.Split(string(content), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if codeHeading.MatchString(name) {
			names = append(names, name)
			texts[name] = text
		}
	}
	return names, texts
}

func TestEveryCodeHasASectionAndEverySectionACode(t *testing.T) {
	for _, page := range []string{"../../docs/denials.md", "../../docs/ja/denials.md"} {
		sections, _ := sectionsOf(t, page)
		for _, code := range Codes() {
			if !slices.Contains(sections, string(code)) {
				t.Errorf("%s has no section for %s", page, code)
			}
		}
		for _, section := range sections {
			if !slices.Contains(Codes(), Code(section)) {
				t.Errorf("%s has a section for %s, which is no code", page, section)
			}
		}
	}
}

func TestTheJapanesePageHasTheSectionsOfTheEnglishOneInItsOrder(t *testing.T) {
	english, _ := sectionsOf(t, "../../docs/denials.md")
	japanese, _ := sectionsOf(t, "../../docs/ja/denials.md")
	if diff := cmp.Diff(english, japanese); diff != "" {
		t.Errorf("sections (-English +Japanese):\n%s", diff)
	}
}

// TestTheJapanesePageQuotesWhatAStudentReads compares what stands between the values of each message.
func TestTheJapanesePageQuotesWhatAStudentReads(t *testing.T) {
	content, err := messageFiles.ReadFile("messages/ja.yaml")
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]string{}
	if err := yaml.UnmarshalStrict(content, &messages); err != nil {
		t.Fatal(err)
	}
	_, texts := sectionsOf(t, "../../docs/ja/denials.md")
	for code, message := range messages {
		quote := regexp.QuoteMeta("> " + code + ": " + message)
		quote = templateValue.ReplaceAllLiteralString(quote, "[^\n{}]+")
		if !regexp.MustCompile("(?m)^" + quote + "$").MatchString(texts[code]) {
			t.Errorf("docs/ja/denials.md, section %s, does not quote the message: %s", code, message)
		}
	}
}
