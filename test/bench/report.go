package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report collects figures and writes them as a table.
type report struct {
	out     io.Writer
	figures []figure
}

// figure is one line of the table.
type figure struct {
	what, measured, goal, verdict string
}

func newReport(out io.Writer) *report { return &report{out: out} }

// note enters a figure without a goal.
func (r *report) note(what, format string, arguments ...any) {
	r.figures = append(r.figures, figure{what: what, measured: fmt.Sprintf(format, arguments...)})
}

// atMost enters a figure that should not be passed.
func (r *report) atMost(what string, measured, goal float64, unit string) {
	r.judged(what, measured, "≤", goal, unit, measured <= goal)
}

// atLeast enters a figure that should be reached.
func (r *report) atLeast(what string, measured, goal float64, unit string) {
	r.judged(what, measured, "≥", goal, unit, measured >= goal)
}

func (r *report) judged(what string, measured float64, relation string, goal float64, unit string, met bool) {
	verdict := "missed"
	if met {
		verdict = "met"
	}
	r.figures = append(r.figures, figure{what, strings.TrimSpace(fmt.Sprintf("%.3g %s", measured, unit)), strings.TrimSpace(fmt.Sprintf("%s %g %s", relation, goal, unit)), verdict})
}

// write writes the table, under what it was measured on.
func (r *report) write() error {
	fmt.Fprintf(r.out, "%s\n\n", machine())
	table := tabwriter.NewWriter(r.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "what\tmeasured\tgoal\t")
	for _, f := range r.figures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.what, f.measured, f.goal, f.verdict)
	}
	return table.Flush()
}

// machine tells what the figures were measured on, and how busy it is: a run on a machine that does other work compares well and tells
// no times.
func machine() string {
	model := "unknown processor"
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(content), "\n") {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "unknown"
	if content, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(content))[:3], " ")
	}
	return fmt.Sprintf("%d × %s, %s, load at the end %s", runtime.NumCPU(), model, runtime.Version(), load)
}
