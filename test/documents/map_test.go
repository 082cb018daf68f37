package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever looks for the place of something looks here first; a package that is not on the map is not found.
func TestTheMapNamesEveryPartOfTheSource(t *testing.T) {
	content, err := read("docs/development.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "\n## Map\n")
	section, _, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("docs/development.md has no section Map")
	}
	for _, parent := range []string{"cmd", "internal", "test", "hack"} {
		entries, err := os.ReadDir(filepath.Join(Root(), parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			// Parts are named one by one behind their parent, or in a list that begins with it.
			named := regexp.MustCompile(`(?m)` + parent + `/(\w+, )*` + regexp.QuoteMeta(entry.Name()) + `\b`)
			if entry.IsDir() && !named.MatchString(section) {
				t.Errorf("%s/%s is not on the map", parent, entry.Name())
			}
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^(?:cmd|internal|test|hack|charts|docs)/\w+`).FindAllString(section, -1) {
		if _, err := os.Stat(filepath.Join(Root(), match)); err != nil {
			t.Errorf("the map names %s: %v", match, err)
		}
	}
}
