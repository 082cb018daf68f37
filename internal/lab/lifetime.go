package lab

import (
	"fmt"
	"time"
)

// Lifetimes bounds how long a virtual machine may exist.
type Lifetimes struct {
	// Ceiling is the longest that a session can last, all extensions included.
	Ceiling time.Duration
	// DeadlineGrace is what the deadline leaves on top of the ceiling, so that a session which ends in order never meets it.
	DeadlineGrace time.Duration
}

// StuckAfter is how long a virtual machine may be terminating before a person should look: ten times a guest's grace period.
const StuckAfter = 5 * time.Minute

// Deadline is the moment after which a virtual machine that came to be at start may not exist, in whole seconds of UTC.
func (l Lifetimes) Deadline(start time.Time) time.Time {
	return start.Add(l.Ceiling + l.DeadlineGrace).UTC().Truncate(time.Second)
}

// FormatDeadline writes a deadline as the deadline annotation holds it.
func FormatDeadline(deadline time.Time) string {
	return deadline.UTC().Format(time.RFC3339)
}

// ParseDeadline reads the deadline annotation.
func ParseDeadline(value string) (time.Time, error) {
	deadline, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %q, not an RFC 3339 time: %w", DeadlineAnnotation, value, err)
	}
	return deadline.UTC(), nil
}
