package documents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read gives a file of the module; of a directory that there is, nothing.
func read(name string) ([]byte, error) {
	name = filepath.Join(Root(), name)
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return nil, err
	}
	return os.ReadFile(name)
}

func TestEveryLinkLeadsToAFileAndToAHeadingInIt(t *testing.T) {
	pages := files(t, ".md")
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "docs/README.md", "docs/install.md", "charts/vmwarden/README.md"} {
		if !slices.Contains(pages, page) {
			t.Errorf("%s is not among the pages: %v", page, pages)
		}
	}
	for _, page := range pages {
		content, err := read(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range Links(string(content)) {
			if err := Dead(page, target, read); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestALinkIsDeadWhereFileOrHeadingIsMissing(t *testing.T) {
	read := func(name string) ([]byte, error) {
		if name != "docs/a.md" {
			return nil, fs.ErrNotExist
		}
		return []byte("# Title\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n"), nil
	}
	for target, dead := range map[string]bool{
		"a.md": false, "../docs/a.md": false, "#title": false, "a.md#twice-1": false, "https://example.com/x#y": false,
		"b.md": true, "docs/a.md": true, "#no-heading": true, "a.md#twice-2": true, "a.md#Title": true,
	} {
		err := Dead("docs/a.md", target, read)
		if (err != nil) != dead {
			t.Errorf("%s: %v, want dead: %t", target, err, dead)
		}
	}
	if err := Dead("README.md", "b.md", read); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file is not named as the cause: %v", err)
	}
}

func TestASlugIsGitHubs(t *testing.T) {
	for text, want := range map[string]string{
		"Setting an environment up":  "setting-an-environment-up",
		"CPU and memory":             "cpu-and-memory",
		"`webhook` and its_flags":    "webhook-and-its_flags",
		"What is kept, and why?":     "what-is-kept-and-why",
		"A – B / C":                  "a--b--c",
		"See [the page](reaping.md)": "see-the-page",
		"VmwardenReapNeverRan":       "vmwardenreapneverran",
		"期限と「回収」(ブレーキ)":              "期限と回収ブレーキ",
		"2. Golden PVC's owner":      "2-golden-pvcs-owner",
	} {
		if got := Slug(text); got != want {
			t.Errorf("Slug(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWhatStandsInCodeIsNoLink(t *testing.T) {
	page := "[a](a.md) `[b](b.md)`, [c](c.md#d)\n\n```\n[e](e.md)\n```\n"
	if diff := cmp.Diff([]string{"a.md", "c.md#d"}, Links(page)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}
