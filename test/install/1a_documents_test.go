package install_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/documents"
)

// leftOut are the documents' commands that are not run here, by how they begin, and why.
var leftOut = map[string]string{
	"kubectl create namespace ":                  "the namespace was made before, for the database's Secret",
	"kubectl -n vmwarden create secret ":         "the same: here with the address of a database that is there",
	"kubectl -n vmwarden top ":                   "there is no metrics server",
	"kubectl -n vmwarden get secret,certificate": "cert-manager is not installed",
}

// TestEveryKubectlCommandOfTheDocumentsRuns runs them by kubectl itself, as an admin, in an installation at work. A command that finds
// nothing where the document says to look is as wrong as one that fails.
func TestEveryKubectlCommandOfTheDocumentsRuns(t *testing.T) {
	session := "9d000000-0000-4000-8000-000000000001"
	create(t, session)
	t.Cleanup(func() {
		err := admin.Machines(vmNamespace).Delete(context.WithoutCancel(t.Context()), backend.Lesson{Session: session}.VMName(), metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	bin := kubectlDirectory(t)
	used := map[string]bool{}
	lines := append(documentedLines(t), notesLines(t)...)
	// What deletes comes last: others look at what it takes away.
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strconv.FormatBool(deletes(a)), strconv.FormatBool(deletes(b)))
	})
	for _, line := range lines {
		if beginning := excuse(line); beginning != "" {
			used[beginning] = true
			continue
		}
		command := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line)
		// Some are piped into vmwarden's own programs, which the image was made of.
		path := strings.Join([]string{bin, filepath.Join(helm.Root(), "bin"), os.Getenv("PATH")}, ":")
		command.Env = append(os.Environ(), "KUBECONFIG="+helm.Kubeconfig, "PATH="+path)
		output, err := command.CombinedOutput()
		if len(output) == 0 && strings.Contains(line, " | grep ") {
			// What is wrong is looked for, and nothing is; kubectl's own error would be in the output.
			continue
		}
		if err != nil || strings.Contains(string(output), "No resources found") {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	for beginning := range leftOut {
		if !used[beginning] {
			t.Errorf("no document has %q any more: take it off the list", beginning)
		}
	}
}

func deletes(line string) bool { return strings.Contains(line, " delete ") }

func excuse(line string) string {
	for beginning := range leftOut {
		if strings.HasPrefix(line, beginning) {
			return beginning
		}
	}
	return ""
}

// kubectlDirectory holds kubectl and nothing else.
func kubectlDirectory(t *testing.T) string {
	t.Helper()
	kubectl, err := binaries.LocateKubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := os.Symlink(kubectl, filepath.Join(directory, "kubectl")); err != nil {
		t.Fatal(err)
	}
	return directory
}

// documentedLines are the commands of the English documents; those of the translations are the same, which test/documents sees to.
func documentedLines(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(documents.Root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range append(names, filepath.Join(documents.Root(), "README.md")) {
		relative, err := filepath.Rel(documents.Root(), name)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := documents.Blocks(relative)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			if block.Language == "sh" {
				lines = append(lines, kubectlLines(block.Text)...)
			}
		}
	}
	if len(lines) < 25 {
		t.Errorf("the documents have only %d commands of kubectl", len(lines))
	}
	return lines
}

// notesLines are what Helm told to check next.
func notesLines(t *testing.T) []string {
	t.Helper()
	notes, err := helm.Run(t.Context(), "get", "notes", "vmwarden", "--namespace", ownNamespace, "--kubeconfig", helm.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	lines := kubectlLines(string(notes))
	if len(lines) < 4 {
		t.Errorf("the notes have only %d commands of kubectl:\n%s", len(lines), notes)
	}
	return lines
}

func kubectlLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			lines = append(lines, line)
		}
	}
	return lines
}
