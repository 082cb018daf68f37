// Package documents reads what the documentation tells people to run, so that the tests run it.
package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Block is a fenced block.
type Block struct {
	// Language is what the fence says, such as "sh".
	Language string
	// Text is the block as it is.
	Text string
}

// Blocks gives a document's fenced blocks that name a language, in their order. The document is named from the module's root.
func Blocks(document string) ([]Block, error) {
	content, err := os.ReadFile(filepath.Join(Root(), document))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", document, err)
	}
	var blocks []Block
	var open *Block
	for line := range strings.Lines(string(content)) {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open != nil:
			if open.Language != "" {
				blocks = append(blocks, *open)
			}
			open = nil
		case fence:
			open = &Block{Language: language}
		case open != nil:
			open.Text += line
		}
	}
	return blocks, nil
}

// Lines gives the lines of a document's fenced blocks of a language, in their order: without indentation and empty lines.
func Lines(document, language string) ([]string, error) {
	blocks, err := Blocks(document)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, block := range blocks {
		if block.Language != language {
			continue
		}
		for line := range strings.Lines(block.Text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s has no block of %s", document, language)
	}
	return lines, nil
}
