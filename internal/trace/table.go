package trace

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ttlab/vmwarden/internal/terminal"
)

// WriteTable writes the report for people: the answers for each machine, the time line, and what is not known.
func (r Report) WriteTable(out io.Writer) error {
	var page bytes.Buffer
	for _, m := range r.Machines {
		m.write(&page)
	}
	columns := newColumns(&page)
	row(columns, "TIME", "SOURCE", "WHO", "OBJECT", "WHAT", "TOLD")
	for _, line := range r.Timeline {
		row(columns, stamp(line.Time), string(line.Source), line.actor(), line.Object, line.What, line.told())
	}
	flush(columns)
	fmt.Fprintln(&page, "\nNot known:")
	for _, text := range r.NotKnown {
		fmt.Fprintf(&page, "- %s\n", terminal.Printable(text))
	}
	if _, err := page.WriteTo(out); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}

func (m Machine) write(page *bytes.Buffer) {
	uid := m.UID
	if uid == "" {
		uid = "not known"
	}
	fmt.Fprintf(page, "%s\n", terminal.Printable(fmt.Sprintf("%s/virtualmachine/%s, UID %s, environment %s, session %s",
		orNone(m.Namespace), m.Name, uid, orNone(m.Environment), orNone(m.Session))))
	columns := newColumns(page)
	for _, a := range m.Answers {
		row(columns, "  "+a.Question, a.when(), a.told())
	}
	flush(columns)
	fmt.Fprintln(page)
}

func (a Answer) when() string {
	switch {
	case !a.Known:
		return "not known"
	case a.Time != nil:
		return stamp(*a.Time)
	}
	return "-"
}

// told is who and what, and where that is known from.
func (a Answer) told() string {
	if !a.Known {
		return a.Text
	}
	text := a.Text
	if a.Who != "" {
		text = strings.TrimSuffix("by "+a.Who+": "+a.Text, ": ")
	}
	return fmt.Sprintf("%s [%s]", text, a.Source)
}

func newColumns(page *bytes.Buffer) *tabwriter.Writer {
	return tabwriter.NewWriter(page, 0, 0, 2, ' ', 0)
}

// flush writes a table into a buffer, which takes every write.
func flush(columns *tabwriter.Writer) { _ = columns.Flush() }

// row writes a line of cells, none of which a terminal obeys.
func row(columns *tabwriter.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = terminal.Printable(orNone(cell))
	}
	fmt.Fprintln(columns, strings.Join(cells, "\t"))
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (l Line) actor() string {
	if l.Impersonator != "" {
		return l.Who + " (impersonated by " + l.Impersonator + ")"
	}
	return l.Who
}

func (l Line) told() string {
	text := l.Text
	if l.Times > 1 {
		text += fmt.Sprintf(" (%d times", l.Times)
		if l.Last != nil {
			text += ", the last at " + stamp(*l.Last)
		}
		text += ")"
	}
	return text
}
