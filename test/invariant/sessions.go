package invariant

import (
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/config"
)

// sessions knows what the rows said at every moment.
type sessions struct {
	words   config.Statuses
	changes map[sessionKey][]Change
}

type sessionKey struct{ environment, id string }

func newSessions(h *History) sessions {
	s := sessions{words: h.Configuration.Database.Statuses, changes: map[sessionKey][]Change{}}
	for _, c := range h.Changes {
		key := sessionKey{c.Environment, c.Session}
		s.changes[key] = append(s.changes[key], c)
	}
	return s
}

// liveThroughout tells whether a session was live at every moment of a span, and so at the one that counts.
func (s sessions) liveThroughout(key sessionKey, from, to time.Time) bool {
	changes := s.changes[key]
	last := -1
	for i, c := range changes {
		if !c.At.After(from) {
			last = i
		}
	}
	if last < 0 || !s.liveUntil(changes[last].After, to) {
		return false
	}
	for _, c := range changes[last+1:] {
		if c.At.After(to) {
			break
		}
		if !s.liveUntil(c.After, to) {
			return false
		}
	}
	return true
}

// liveUntil tells whether a row protects what is its own until a moment, if nobody changes it: also one whose word nobody
// knows, and one that has no end.
func (s sessions) liveUntil(row *Row, to time.Time) bool {
	if row == nil || s.over(row.Status) {
		return false
	}
	return !s.started(row.Status) || row.ExpiresAt == nil || row.ExpiresAt.After(to)
}

func (s sessions) over(status string) bool {
	return status == s.words.Expired || status == s.words.Failed || slices.Contains(s.words.Ended, status)
}

func (s sessions) started(status string) bool {
	return status == s.words.Starting || status == s.words.Running
}
