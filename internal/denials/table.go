package denials

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ttlab/vmwarden/internal/terminal"
)

// noName stands for what a denial does not have, in a table.
const noName = "-"

// WriteTable writes the report for people, grouped by one of the Groupings, or with every denial where by is empty.
func (r Report) WriteTable(out io.Writer, by string) error {
	columns := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = printable(cell)
		}
		fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	if by != "" {
		row(strings.ToUpper(by), "DENIED", "WOULD DENY", "WENT THROUGH LATER")
		for _, g := range append(r.Groups(by), r.totalRow()) {
			row(g.Name, strconv.Itoa(g.Denied), strconv.Itoa(g.WouldDeny), strconv.Itoa(g.WentThrough))
		}
	} else {
		row("TIME", "DECISION", "CODES", "OPERATION", "OBJECT", "ENVIRONMENT", "SESSION", "REQUESTER", "LATER", "FOUND")
		for _, d := range r.Denials {
			row(d.cells()...)
		}
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func (r Report) totalRow() Group {
	total := r.Total()
	total.Name = "(all denials)"
	return total
}

func (d *Denial) cells() []string {
	requester := d.Requester
	if d.Impersonator != "" {
		requester += " (impersonated by " + d.Impersonator + ")"
	}
	decision := d.Decision
	if d.DryRun {
		decision += " (dry run)"
	}
	return []string{
		stamp(d.Time), decision, strings.Join(d.Codes, ","), d.Operation, d.Object(), d.Environment, d.Session, requester, d.Became(), d.Message,
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// printable is what a cell holds.
func printable(cell string) string {
	if cell == "" {
		return noName
	}
	return terminal.Printable(cell)
}

// WriteCSV writes the report for spreadsheets, with a line of headings.
func (r Report) WriteCSV(out io.Writer, by string) error {
	sheet := csv.NewWriter(out)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = literal(cell)
		}
		// The error stays with the writer until Flush.
		_ = sheet.Write(cells)
	}
	if by != "" {
		row(by, "denied", "wouldDeny", "wentThrough")
		for _, g := range r.Groups(by) {
			row(g.Name, strconv.Itoa(g.Denied), strconv.Itoa(g.WouldDeny), strconv.Itoa(g.WentThrough))
		}
	} else {
		row("time", "decision", "codes", "operation", "kind", "namespace", "name", "environment", "session", "requester", "requesterKind",
			"impersonator", "dryRun", "later", "laterAt", "retries", "message", "review", "auditID", "sources")
		for _, d := range r.Denials {
			laterAt := ""
			if d.Later.At != nil {
				laterAt = d.Later.At.UTC().Format(time.RFC3339Nano)
			}
			row(d.Time.UTC().Format(time.RFC3339Nano), d.Decision, strings.Join(d.Codes, ","), d.Operation, d.Kind, d.Namespace, d.Name,
				d.Environment, d.Session, d.Requester, d.RequesterKind, d.Impersonator, strconv.FormatBool(d.DryRun), d.Later.State, laterAt,
				strconv.Itoa(d.Later.Retries), d.Message, d.Review, d.AuditID, strings.Join(d.Sources, ","))
		}
	}
	sheet.Flush()
	if err := sheet.Error(); err != nil {
		return fmt.Errorf("writing the sheet: %w", err)
	}
	return nil
}

// literal keeps a spreadsheet from taking a cell for a formula, by the apostrophe that spreadsheets themselves use for it.
func literal(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
