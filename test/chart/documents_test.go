package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/test/documents"
)

// TestTheDocumentedInstallationsRender takes every `helm upgrade --install` of docs/install.md, with the values that stand before it,
// and renders what it would install. That Helm installs it is shown by test/install.
func TestTheDocumentedInstallationsRender(t *testing.T) {
	blocks, err := documents.Blocks("docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	rendered := 0
	for _, block := range blocks {
		if block.Language == "yaml" && strings.HasPrefix(block.Text, "# values.yaml") {
			if err := os.WriteFile(values, []byte(block.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if block.Language != "sh" {
			continue
		}
		for line := range strings.Lines(block.Text) {
			arguments, found := strings.CutPrefix(line, "helm upgrade --install ")
			if !found {
				continue
			}
			rendered++
			words := strings.Fields(arguments)
			words = slices.DeleteFunc(words, func(word string) bool { return word == "--wait" })
			for i, word := range words {
				words[i] = strings.NewReplacer("charts/vmwarden", helm.Dir(), "values.yaml", values).Replace(word)
			}
			if _, err := helm.Run(t.Context(), append([]string{"template", "--kube-version", kubeVersion}, words...)...); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if rendered < 5 {
		t.Errorf("only %d installations were found in the document", rendered)
	}
}
