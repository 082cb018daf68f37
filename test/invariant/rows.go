package invariant

import (
	"strings"
	"time"
)

// rows judges what reapers wrote into the sessions tables.
func (j *judge) rows() {
	for i := range j.Changes {
		if c := &j.Changes[i]; c.By == j.ReaperRole {
			j.rowGuard(c)
			j.rowBeforeMachine(c)
		}
	}
}

// rowGuard judges the change itself.
func (j *judge) rowGuard(c *Change) {
	if c.Before == nil || c.After == nil {
		j.rowViolated(RowGuard, c, "a reaper inserts and deletes nothing")
		return
	}
	before, after, words := *c.Before, *c.After, j.Configuration.Database.Statuses
	ended := after.Status == words.Expired && j.sessions.started(before.Status) && before.ExpiresAt != nil && !before.ExpiresAt.After(c.At)
	failed := after.Status == words.Failed && before.Status == words.Running
	if !ended && !failed {
		j.rowViolated(RowGuard, c, "from %q, which ends at %s, to %q", before.Status, when(before.ExpiresAt), after.Status)
	}
	if after.FinishedAt == nil || after.Rest != before.Rest || when(after.ExpiresAt) != when(before.ExpiresAt) {
		j.rowViolated(RowGuard, c, "more was changed than the end, or its time is missing")
	}
}

// rowBeforeMachine judges whether a row was ended while its machine went on. What a pass goes by is at most as old as a pass may take.
func (j *judge) rowBeforeMachine(c *Change) {
	for _, m := range j.machines.all {
		if m.session == c.Session && m.environment == c.Environment && m.existsFrom.Before(c.At.Add(-j.Configuration.Reaping.PassTimeout.Duration)) && m.existsTo.After(c.At) {
			j.rowViolated(RowBeforeMachine, c, "machine %s exists since %s, and nobody had asked for its deletion", m.name, m.existsFrom.UTC().Format(time.RFC3339Nano))
		}
	}
}

func (j *judge) rowViolated(invariant string, c *Change, format string, arguments ...any) {
	j.violated(invariant, c.At, "", "%s ended session %s of %s: "+format, append([]any{c.By, c.Session, c.Environment}, arguments...)...)
}

func when(t *time.Time) string {
	if t == nil {
		return "no time"
	}
	return strings.TrimSuffix(t.UTC().Format(time.RFC3339Nano), "Z")
}
