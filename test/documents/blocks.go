// Package documents reads what the documentation tells people to run, so that the tests run it.
package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Lines gives the lines of a document's fenced blocks of a language such as "sh", in their order. The document is named from the
// module's root.
func Lines(document, language string) ([]string, error) {
	_, self, _, _ := runtime.Caller(0)
	content, err := os.ReadFile(filepath.Join(filepath.Dir(self), "..", "..", document))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", document, err)
	}
	var lines []string
	inside := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```"+language:
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && line != "":
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s has no block of %s", document, language)
	}
	return lines, nil
}
