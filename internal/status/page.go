package status

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ttlab/vmwarden/internal/logs"
	"github.com/ttlab/vmwarden/internal/page"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.Template(pageSource, template.FuncMap{
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"exit":  func(status int) string { return exitWords[status] },
	"took":  func(seconds float64) string { return duration(seconds).Round(time.Millisecond).String() },
})

// exitWords say in short how a pass ended.
var exitWords = map[int]string{0: "clean", 1: "could not run", 3: "items failed", 4: "held back"}

// gapFactor is how many usual intervals without a pass make a gap: one that ran late is none.
const gapFactor = 3

// pageData is what the page shows.
type pageData struct {
	Written      time.Time
	Environment  string
	Last, Clean  *time.Time
	From, To     time.Time
	Logs         []string
	Broken       []logs.Broken
	LeftOut      int
	Passes       int
	NotClean     int
	Count        Count
	Usual        time.Duration
	Gaps         int
	Charts       []page.Chart
	Entries      []entry
	Totals       []total
	ExitTotals   []page.Bar
	ConfigPasses int
}

// entry is one of the list: a pass, a number of passes in which there was nothing to do, or a time without any.
type entry struct {
	Pass *Pass
	// Quiet is the number of passes, From and To the first and the last of them; of a gap what lies on its two sides.
	Quiet    int
	From, To time.Time
	// Gap is how long there was no pass; zero for none.
	Gap time.Duration
	// Directions are a pass's counts, in the order of directions, without those in which nothing was done.
	Directions []total
}

// total are a direction's items.
type total struct {
	Direction string
	Total
}

// WritePage writes the passes as one page that needs nothing else: no network, and no JavaScript to be read.
func (h *History) WritePage(out io.Writer, now time.Time) error {
	h.end()
	data := pageData{
		Written: now, Environment: h.Status.Environment, Last: h.Status.LastPass, Clean: h.Status.LastClean, Logs: h.Logs, Broken: h.Broken,
		LeftOut: h.LeftOut, Passes: len(h.Passes), Usual: h.usual(), Totals: totals(h.Status.DirectionTotals),
	}
	for _, pass := range h.Status.Passes {
		if !pass.StartedAt.Before(h.since) {
			data.ConfigPasses++
		}
	}
	for _, exit := range slices.Sorted(maps.Keys(h.Status.PassTotals)) {
		data.ExitTotals = append(data.ExitTotals, exitBar(exit, h.Status.PassTotals[exit]))
	}
	for _, pass := range h.Passes {
		all := pass.total()
		data.Count.Done += all.Done
		data.Count.Kept += all.Kept
		data.Count.Failed += all.Failed
		if pass.ExitStatus != 0 {
			data.NotClean++
		}
	}
	if len(h.Passes) > 0 {
		data.To, data.From = h.Passes[0].StartedAt, h.Passes[len(h.Passes)-1].StartedAt
	}
	data.Charts, data.Entries = h.charts(), h.entries(now, data.Usual)
	for _, e := range data.Entries {
		if e.Gap > 0 {
			data.Gaps++
		}
	}
	return page.Write(out, pageTemplate, "Passes of environment "+h.Status.Environment, data)
}

func exitBar(exit, number int) page.Bar {
	bar := page.Bar{Name: exitName(exit), Number: number}
	if exitWords[exit] != "" {
		bar.Link = "exit-" + strconv.Itoa(exit)
	}
	return bar
}

// exitName names an exit status.
func exitName(exit int) string {
	if word := exitWords[exit]; word != "" {
		return fmt.Sprintf("%d, %s", exit, word)
	}
	return strconv.Itoa(exit)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// usual is the median of the times between two starts; zero where there are too few to tell.
func (h *History) usual() time.Duration {
	var between []time.Duration
	for i := 1; i < len(h.Passes); i++ {
		between = append(between, h.Passes[i-1].StartedAt.Sub(h.Passes[i].StartedAt))
	}
	if len(between) < gapFactor {
		return 0
	}
	slices.Sort(between)
	return between[len(between)/2]
}

// charts are over the passes that are shown.
func (h *History) charts() []page.Chart {
	exits, hours, done, held := map[int]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, pass := range h.Passes {
		exits[pass.ExitStatus]++
		hours[pass.StartedAt.UTC().Format("2006-01-02 15:00")]++
		for direction, count := range pass.Summary {
			done[direction] += count.Done
		}
		for _, hold := range pass.Holds {
			held[hold.Direction+", "+hold.Cause]++
		}
	}
	byName := func(counts map[string]int, names []string) []page.Bar {
		var bars []page.Bar
		for _, name := range names {
			bars = append(bars, page.Bar{Name: name, Number: counts[name]})
		}
		return bars
	}
	var ended []page.Bar
	for _, exit := range slices.Sorted(maps.Keys(exits)) {
		ended = append(ended, exitBar(exit, exits[exit]))
	}
	return []page.Chart{
		page.NewChart("exit", "Passes by exit status", ended),
		page.NewChart("hour", "Passes by hour (UTC)", byName(hours, slices.Sorted(maps.Keys(hours)))),
		page.NewChart("done", "Items done by direction", byName(done, Directions())),
		page.NewChart("held", "Directions held back, by cause", byName(held, slices.Sorted(maps.Keys(held)))),
	}
}

// entries are the list, the newest first.
func (h *History) entries(now time.Time, usual time.Duration) []entry {
	var list []entry
	later := now
	for i := range h.Passes {
		pass := &h.Passes[i]
		if between := later.Sub(pass.StartedAt); usual > 0 && between > gapFactor*usual {
			list = append(list, entry{Gap: between.Round(time.Second), From: pass.StartedAt, To: later})
		}
		later = pass.StartedAt
		if !pass.quiet() {
			list = append(list, entry{Pass: pass, Directions: counts(pass.Summary)})
			continue
		}
		if last := len(list) - 1; last >= 0 && list[last].Quiet > 0 {
			list[last].Quiet++
			list[last].From = pass.StartedAt
			continue
		}
		list = append(list, entry{Quiet: 1, From: pass.StartedAt, To: pass.StartedAt})
	}
	return list
}

// quiet tells a clean pass in which there was nothing to do and nothing to tell.
func (p Pass) quiet() bool {
	return p.ExitStatus == 0 && p.total() == Count{} && len(p.Holds)+len(p.Failures)+len(p.Notices) == 0
}

// counts are those of a pass.
func counts(summary map[string]Count) []total {
	list := map[string]Total{}
	for direction, count := range summary {
		if count != (Count{}) {
			list[direction] = Total{Count: count}
		}
	}
	return totals(list)
}

// totals are in the order of directions; what a ConfigMap may name besides comes last.
func totals(by map[string]Total) []total {
	names := Directions()
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var list []total
	for _, name := range names {
		if count, found := by[name]; found {
			list = append(list, total{Direction: name, Total: count})
		}
	}
	return list
}
