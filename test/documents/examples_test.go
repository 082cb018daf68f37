package documents

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheConfigurationOfTheReadmeIsTheExample(t *testing.T) {
	example, err := read("docs/examples/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", "README.ja.md"} {
		blocks, err := Blocks(page)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, block := range blocks {
			if block.Language != "yaml" {
				continue
			}
			found = true
			if diff := cmp.Diff(withoutComments(string(example)), withoutComments(block.Text)); diff != "" {
				t.Errorf("%s (-docs/examples/config.yaml +%s):\n%s", page, page, diff)
			}
		}
		if !found {
			t.Errorf("%s has no block of yaml", page)
		}
	}
}

// withoutComments leaves out lines that are comments, which a translation translates.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
