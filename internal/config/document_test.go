package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/test/documents"
)

// TestTheDocumentedDefaultsAreTheDefaults decodes the document's configuration on top of a minimal file: nothing may change.
func TestTheDocumentedDefaultsAreTheDefaults(t *testing.T) {
	lines, err := documents.Lines("docs/reaping.md", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for _, line := range lines {
		// The reader of the document strips what leads a line; below a section it is two spaces.
		if !strings.HasSuffix(line, ":") {
			line = "  " + line
		}
		section += line + "\n"
	}
	documented, err := Parse([]byte(minimal + section))
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	got, gotErr := json.Marshal(documented)
	want, wantErr := json.Marshal(defaults)
	if gotErr != nil || wantErr != nil || !bytes.Equal(got, want) {
		t.Errorf("documented: %s\ndefaults:   %s (%v, %v)", got, want, gotErr, wantErr)
	}
	var sections map[string]map[string]any
	if err := yaml.Unmarshal([]byte(section), &sections); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]any{"database": defaults.Database, "reaping": defaults.Reaping, "brakes": defaults.Brakes} {
		content, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(content, &fields); err != nil {
			t.Fatal(err)
		}
		for field := range fields {
			if _, told := sections[name][field]; !told {
				t.Errorf("%s.%s is not in the document", name, field)
			}
		}
	}
}
