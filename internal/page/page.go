// Package page makes reports that are one file each: no network, readable without JavaScript, on a phone and by keyboard. A report brings
// the template "body"; look, search and charts are the same for all. The list with the search is <ol id="entries" class="entries">, below
// something with the id "list".
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
)

//go:embed layout.html
var layout string

//go:embed style.css
var style string

//go:embed search.js
var script string

// Chart are numbers drawn as bars.
type Chart struct {
	// By makes its id, Title its heading.
	By, Title string
	Bars      []Bar
	// Most is the longest bar.
	Most int
}

// Bar is one of a chart's.
type Bar struct {
	Name string
	// Link is the id of what explains it; empty for none.
	Link   string
	Number int
}

// NewChart makes a chart of bars.
func NewChart(by, title string, bars []Bar) Chart {
	c := Chart{By: by, Title: title, Bars: bars}
	for _, bar := range bars {
		c.Most = max(c.Most, bar.Number)
	}
	return c
}

// Template is a report's page; body defines the template "body".
func Template(body string, functions template.FuncMap) *template.Template {
	return template.Must(template.Must(template.New("page").Funcs(functions).Parse(layout)).Parse(body))
}

// Write writes a page. The browser is told to run our own style and script and nothing else, whatever a name in the report may hold.
func Write(out io.Writer, t *template.Template, title string, body any) error {
	err := t.Execute(out, struct {
		Title                 string
		Style                 template.CSS
		Script                template.JS
		StyleHash, ScriptHash string
		Body                  any
	}{
		Title:     title,
		Style:     template.CSS(style), //nolint:gosec // Our own file.
		Script:    template.JS(script), //nolint:gosec // Our own file.
		StyleHash: sourceHash(style), ScriptHash: sourceHash(script), Body: body,
	})
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// sourceHash is how a Content-Security-Policy names a style or a script.
func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
