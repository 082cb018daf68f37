package denials

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/page"
	"github.com/ttlab/vmwarden/internal/policy"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.Template(pageSource, template.FuncMap{
	"stamp":   stamp,
	"wouldBe": func(d *Denial) bool { return d.Decision == policy.ReportedWord },
})

// pageData is what the page shows.
type pageData struct {
	Report
	// Written is when the page was made, Since and Until what it was asked for.
	Written, Since, Until time.Time
	Charts                []page.Chart
	Explanations          []Explanation
}

// WritePage writes the report as one page that needs nothing else: no network, and no JavaScript to be read. What it tells of the
// filter is its time.
func (r Report) WritePage(out io.Writer, filter Filter, now time.Time) error {
	data := pageData{Report: r, Written: now, Since: filter.Since, Until: filter.Until}
	// The newest first: that is what somebody on a phone is after.
	data.Denials = slices.Clone(r.Denials)
	slices.Reverse(data.Denials)
	titles := map[string]string{"day": "By day (UTC)", "code": "By code", "environment": "By environment"}
	for _, by := range []string{"day", "code", "environment"} {
		var bars []page.Bar
		for _, group := range r.Groups(by) {
			bar := page.Bar{Name: group.Name, Number: group.Total()}
			if by == "code" {
				bar.Link = "code-" + group.Name
			}
			bars = append(bars, bar)
		}
		data.Charts = append(data.Charts, page.NewChart(by, titles[by], bars))
	}
	for _, group := range r.Groups("code") {
		data.Explanations = append(data.Explanations, explain(group.Name))
	}
	return page.Write(out, pageTemplate, "Denials by vmwarden", data)
}
