package documents

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Root is the module's root.
func Root() string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..")
}

// Files names the module's files whose names end so, from its root, without those of directories that are no part of it.
func Files(suffix string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(Root()), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "bin" || (name != "." && strings.HasPrefix(entry.Name(), "."))) {
			return fs.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the files *%s: %w", suffix, err)
	}
	return names, nil
}

// Heading is a heading of a page.
type Heading struct {
	// Level is 1 for a title.
	Level int
	// Text is the heading as it is written.
	Text string
	// Anchor is what a link to it ends with, by GitHub's rules.
	Anchor string
}

var (
	heading  = regexp.MustCompile(`^(#{1,6})\s+(.+?)\s*#*$`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\[([^\]]*)\]\(([^()\s]+)\)`)
)

// Headings gives a page's headings, in their order.
func Headings(page string) []Heading {
	var headings []Heading
	seen := map[string]int{}
	for _, line := range prose(page) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		slug := Slug(match[2])
		anchor := slug
		if n := seen[slug]; n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		seen[slug]++
		headings = append(headings, Heading{Level: len(match[1]), Text: match[2], Anchor: anchor})
	}
	return headings
}

// Slug is the anchor that GitHub makes of a heading: in lower case, with a hyphen for each space, and with no other sign than
// hyphens and underscores. Letters of every script stay.
func Slug(text string) string {
	text = link.ReplaceAllString(text, "$1")
	var slug strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r == ' ':
			slug.WriteRune('-')
		case r == '-', r == '_', unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl):
			slug.WriteRune(r)
		}
	}
	return slug.String()
}

// Links gives the targets of a page's links, in their order; those in code are none.
func Links(page string) []string {
	var targets []string
	for _, line := range prose(page) {
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			targets = append(targets, match[2])
		}
	}
	return targets
}

// prose gives the lines of a page that are in no fenced block.
func prose(page string) []string {
	var lines []string
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	}
	return lines
}

// Dead says what is wrong with a link on the page of that name, or nothing. read gives a file by its name from the module's root.
// A link to another site is not judged.
func Dead(page, target string, read func(name string) ([]byte, error)) error {
	parsed, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("%s: %s is no link: %w", page, target, err)
	}
	if parsed.Scheme != "" || parsed.Host != "" {
		return nil
	}
	file := page
	if parsed.Path != "" {
		file = path.Join(path.Dir(page), parsed.Path)
	}
	content, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", page, target, err)
	}
	if parsed.Fragment == "" {
		return nil
	}
	isIt := func(h Heading) bool { return h.Anchor == parsed.Fragment }
	if path.Ext(file) != ".md" || !slices.ContainsFunc(Headings(string(content)), isIt) {
		return fmt.Errorf("%s: %s: %s has no heading #%s", page, target, file, parsed.Fragment)
	}
	return nil
}
