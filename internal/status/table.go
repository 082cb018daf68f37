package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ttlab/vmwarden/internal/terminal"
)

// WriteJSON writes the status as indented JSON.
func (s Status) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// WriteTable writes the status for people, with ages as of now.
func (s Status) WriteTable(w io.Writer, now time.Time) error {
	var page bytes.Buffer
	if len(s.Passes) == 0 {
		fmt.Fprintf(&page, "environment %s: no pass has ever run\n", s.Environment)
	} else {
		columns := tabwriter.NewWriter(&page, 0, 0, 3, ' ', 0)
		fmt.Fprintln(columns, "STARTED\tAGE\tTOOK\tEXIT\tDONE\tKEPT\tFAILED\tHELD BACK\tNOTICES")
		for _, pass := range s.Passes {
			all := pass.total()
			fmt.Fprintf(columns, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\n", pass.StartedAt.Format(time.RFC3339), age(pass.StartedAt, now),
				(time.Duration(pass.DurationSeconds * float64(time.Second))).Round(time.Millisecond), pass.ExitStatus,
				all.Done, all.Kept, all.Failed, terminal.Printable(pass.held()), len(pass.Notices)+pass.NoticesLeftOut)
		}
		_ = columns.Flush() // a bytes.Buffer takes every write
		s.writeLast(&page, now)
	}
	if _, err := page.WriteTo(w); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// writeLast says what was wrong with the last pass, and when one last was clean. What it names is as the database has it, and a terminal is
// not to obey it.
func (s Status) writeLast(page *bytes.Buffer, now time.Time) {
	last := s.Passes[0]
	say := func(format string, told ...any) { fmt.Fprintln(page, terminal.Printable(fmt.Sprintf(format, told...))) }
	fmt.Fprintln(page)
	for _, hold := range last.Holds {
		say("held back: %s (%s): %s", hold.Direction, hold.Cause, hold.Reason)
	}
	for _, failure := range last.Failures {
		say("failed: %s of session %s: %s", failure.Direction, failure.Session, failure.Detail)
	}
	for _, notice := range last.Notices {
		say("kept: %s %s", notice.What, notice.Reason)
	}
	clean := "no pass was ever clean"
	if s.LastClean != nil {
		clean = "the last clean pass was " + age(*s.LastClean, now) + " ago"
	}
	fmt.Fprintf(page, "environment %s: the last pass was %s ago (exit status %d); %s\n", s.Environment, age(last.StartedAt, now), last.ExitStatus, clean)
}

func age(from, now time.Time) string { return max(0, now.Sub(from)).Round(time.Second).String() }

func (p Pass) total() Count {
	var all Count
	for _, count := range p.Summary {
		all.Done += count.Done
		all.Kept += count.Kept
		all.Failed += count.Failed
	}
	return all
}

func (p Pass) held() string {
	var held []string
	for _, hold := range p.Holds {
		held = append(held, hold.Direction+" ("+hold.Cause+")")
	}
	if len(held) == 0 {
		return "-"
	}
	slices.Sort(held)
	return strings.Join(held, ",")
}
