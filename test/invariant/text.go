package invariant

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteText writes a verdict for people: what was broken, a line each, and how much was judged.
func (v Verdict) WriteText(out io.Writer) error {
	var text strings.Builder
	for _, violation := range v.Violations {
		fmt.Fprintf(&text, "%s  %-20s  %s", violation.At.UTC().Format(time.RFC3339Nano), violation.Invariant, violation.What)
		if violation.AuditID != "" {
			fmt.Fprintf(&text, "  (audit ID %s)", violation.AuditID)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%d broken: judged were %d writes, %d machines, %d deletions by reapers, %d changes of rows\n",
		len(v.Violations), v.Writes, v.Machines, v.Deletions, v.Changes)
	_, err := io.WriteString(out, text.String())
	return err
}
