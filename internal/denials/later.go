package denials

import (
	"time"

	"github.com/ttlab/vmwarden/internal/logs"
	"github.com/ttlab/vmwarden/internal/policy"
)

// What became of a denied request.
const (
	// LaterAllowed: the same requester was allowed the same later.
	LaterAllowed = "allowed"
	// LaterDenied: it was tried again, and never allowed as far as the logs go.
	LaterDenied = "denied"
	// LaterNotSeen: nothing of the kind was seen again.
	LaterNotSeen = "not-seen"
	// LaterUnknown: only the audit log tells of what was allowed, and there was none, or too much of it to remember.
	LaterUnknown = "unknown"
	// LaterAdmitted: in mode Audit the request was admitted itself.
	LaterAdmitted = "admitted"
)

// Later is what became of a denied request.
type Later struct {
	State string `json:"state"`
	// At is when it was allowed.
	At *time.Time `json:"at,omitempty"`
	// Retries is how often it was tried again, counting the one that was allowed.
	Retries int `json:"retries"`
}

// history is what was attempted, by wish, each in the order of time.
type history struct {
	attempts map[key][]attempt
	// complete is from when on nothing was forgotten; audited is false where no audit log was read.
	complete time.Time
	audited  bool
}

func newHistory(attempts *logs.Newest[attempt], audited bool) history {
	attempts.Trim()
	h := history{attempts: map[key][]attempt{}, complete: attempts.Floor, audited: audited}
	// Both logs may tell of one attempt.
	known := map[string]bool{}
	for _, a := range attempts.Held {
		if a.review != "" {
			if known[a.review] {
				continue
			}
			known[a.review] = true
		}
		h.attempts[a.key] = append(h.attempts[a.key], a)
	}
	return h
}

// later says what became of a denied request.
func (h history) later(d *Denial) Later {
	if d.Decision == policy.ReportedWord {
		return Later{State: LaterAdmitted}
	}
	var l Later
	for _, a := range h.attempts[d.wish] {
		if !a.at.After(d.Time) || a.review != "" && a.review == d.Review {
			continue
		}
		l.Retries++
		if a.allowed {
			l.State, l.At = LaterAllowed, &a.at
			return l
		}
	}
	switch {
	case !h.audited || d.Time.Before(h.complete):
		l.State = LaterUnknown
	case l.Retries > 0:
		l.State = LaterDenied
	default:
		l.State = LaterNotSeen
	}
	return l
}
