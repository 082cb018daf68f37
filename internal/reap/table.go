package reap

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ttlab/vmwarden/internal/terminal"
)

// WriteTable writes the document for people: what is or was done, what is held back, what is kept, and a line that sums up.
func (d Document) WriteTable(w io.Writer) error {
	var page bytes.Buffer
	d.writeItems(&page)
	d.writeHolds(&page)
	d.writeNotices(&page)
	fmt.Fprintln(&page, d.sum())
	if _, err := page.WriteTo(w); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// table writes rows in columns, none of which a terminal obeys: ids and names are as the database has them. A bytes.Buffer takes every
// write.
func table(page *bytes.Buffer, header string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	columns := tabwriter.NewWriter(page, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, header)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = terminal.Printable(cell)
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush()
	fmt.Fprintln(page)
}

func (d Document) writeItems(page *bytes.Buffer) {
	var rows [][]string
	for _, item := range d.Items {
		objects := "(its row alone)"
		if len(item.Objects) > 0 {
			objects = strings.Join(item.Objects, ",")
		}
		row := []string{string(item.Direction), item.Session, objects}
		reason := item.Reason
		if d.ExitStatus != nil {
			row = append(row, string(item.Result))
			if item.Detail != "" {
				reason += "; " + item.Detail
			}
		}
		rows = append(rows, append(row, item.Since.Format(time.RFC3339), reason))
	}
	header := "DIRECTION\tSESSION\tOBJECTS\tSINCE\tREASON"
	if d.ExitStatus != nil {
		header = "DIRECTION\tSESSION\tOBJECTS\tRESULT\tSINCE\tREASON"
	}
	table(page, header, rows)
}

func (d Document) writeHolds(page *bytes.Buffer) {
	var rows [][]string
	for _, hold := range d.Holds {
		rows = append(rows, []string{string(hold.Direction), string(hold.Cause), hold.Reason})
	}
	table(page, "HELD BACK\tCAUSE\tREASON", rows)
}

func (d Document) writeNotices(page *bytes.Buffer) {
	var rows [][]string
	for _, notice := range d.Notices {
		rows = append(rows, []string{notice.What, notice.Reason})
	}
	table(page, "KEPT\tWHY", rows)
}

func (d Document) sum() string {
	if d.ExitStatus == nil {
		return fmt.Sprintf("environment %s: %d planned, %d directions held back, %d notices", d.Environment, len(d.Items), len(d.Holds), len(d.Notices))
	}
	return fmt.Sprintf("environment %s: %s, %s, %s; %d directions held back; exit status %d", d.Environment,
		d.tally("done", func(c DocumentCount) int { return c.Done }), d.tally("kept", func(c DocumentCount) int { return c.Kept }),
		d.tally("failed", func(c DocumentCount) int { return c.Failed }), len(d.Holds), *d.ExitStatus)
}

// tally is a result's count with, where there is one, its parts by direction: "4 done (3 expired, 1 ghost)".
func (d Document) tally(result string, of func(DocumentCount) int) string {
	total := 0
	var parts []string
	for _, direction := range Directions() {
		if n := of(d.Summary[direction]); n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, direction))
		}
	}
	if total == 0 {
		return "0 " + result
	}
	return fmt.Sprintf("%d %s (%s)", total, result, strings.Join(parts, ", "))
}
