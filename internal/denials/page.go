package denials

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/policy"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"stamp":   stamp,
	"wouldBe": func(d *Denial) bool { return d.Decision == policy.ReportedWord },
}).Parse(pageSource))

// pageData is what the page shows.
type pageData struct {
	Report
	// Written is when the page was made, Since and Until what it was asked for.
	Written, Since, Until time.Time
	// Style and Script are our own files, as they are.
	Style  template.CSS
	Script template.JS
	// StyleHash and ScriptHash let the browser run these two and nothing else, whatever a name in a log may hold.
	StyleHash, ScriptHash string
	Charts                []chart
	Explanations          []Explanation
}

// chart is the groups of one grouping, drawn as bars.
type chart struct {
	By     string
	Title  string
	Groups []Group
	// Most is the longest bar.
	Most int
}

// WritePage writes the report as one page that needs nothing else: no network, and no JavaScript to be read. What it tells of the
// filter is its time.
func (r Report) WritePage(out io.Writer, filter Filter, now time.Time) error {
	data := pageData{
		Report: r, Written: now, Since: filter.Since, Until: filter.Until,
		Style:     template.CSS(pageStyle), //nolint:gosec // Our own file.
		Script:    template.JS(pageScript), //nolint:gosec // Our own file.
		StyleHash: sourceHash(pageStyle), ScriptHash: sourceHash(pageScript),
	}
	// The newest first: that is what somebody on a phone is after.
	data.Denials = slices.Clone(r.Denials)
	slices.Reverse(data.Denials)
	titles := map[string]string{"day": "By day (UTC)", "code": "By code", "environment": "By environment"}
	for _, by := range []string{"day", "code", "environment"} {
		c := chart{By: by, Title: titles[by], Groups: r.Groups(by)}
		for _, group := range c.Groups {
			c.Most = max(c.Most, group.Total())
		}
		data.Charts = append(data.Charts, c)
	}
	for _, group := range r.Groups("code") {
		data.Explanations = append(data.Explanations, explain(group.Name))
	}
	if err := pageTemplate.Execute(out, data); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// sourceHash is how a Content-Security-Policy names a style or a script.
func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
