// Package status keeps an environment's last passes where others find them: in a ConfigMap of the VM namespace. A pass writes
// it; `reapjob status` and the webhook process, which makes metrics of it, read it.
package status

import (
	"time"
	"unicode/utf8"
)

// Schema is the version of the ConfigMap's content. A reader that meets another one knows less than it thinks.
const Schema = "vmwarden.io/reap-status/v1"

// The bounds that keep the content far below the 1 MiB that a ConfigMap holds: 30 passes of at most some 10 KB each.
const (
	maxPasses = 30
	maxListed = 10
	// maxText is in bytes.
	maxText = 300
)

// Status is an environment's reaping so far. Its field names are API. The zero value says that no pass ever ran.
type Status struct {
	Schema      string `json:"schema"`
	Environment string `json:"environment"`
	// LastPass is when the last pass started, LastClean when the last one did that ended with exit status 0; nil: never.
	LastPass  *time.Time `json:"lastPass"`
	LastClean *time.Time `json:"lastClean"`
	// PassTotals counts all passes since the ConfigMap was made by their exit status, DirectionTotals their items.
	PassTotals      map[int]int      `json:"passTotals"`
	DirectionTotals map[string]Total `json:"directionTotals"`
	// Passes are the last ones, the newest first.
	Passes []Pass `json:"passes"`
}

// Count counts a direction's items in one pass by their result.
type Count struct {
	Done   int `json:"done"`
	Kept   int `json:"kept"`
	Failed int `json:"failed"`
}

// Total counts a direction's items over all passes, and the passes in which it was held back, by the cause.
type Total struct {
	Count
	Held map[string]int `json:"held,omitempty"`
}

// Pass is what is kept of a pass. Long lists are cut; how many entries were left out stands beside them.
type Pass struct {
	StartedAt       time.Time `json:"startedAt"`
	DurationSeconds float64   `json:"durationSeconds"`
	ExitStatus      int       `json:"exitStatus"`
	// Summary has an entry for each direction.
	Summary         map[string]Count `json:"summary"`
	Holds           []Hold           `json:"holds,omitempty"`
	Failures        []Failure        `json:"failures,omitempty"`
	FailuresLeftOut int              `json:"failuresLeftOut,omitempty"`
	Notices         []Notice         `json:"notices,omitempty"`
	NoticesLeftOut  int              `json:"noticesLeftOut,omitempty"`
}

// Hold is a direction that was not gone in.
type Hold struct {
	Direction string `json:"direction"`
	Cause     string `json:"cause"`
	Reason    string `json:"reason"`
}

// Failure is an item that was not done.
type Failure struct {
	Direction string `json:"direction"`
	Session   string `json:"session"`
	Detail    string `json:"detail"`
}

// Notice is something kept that a person should know of.
type Notice struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Add enters a pass as the newest and drops the oldest beyond the bound.
func (s *Status) Add(pass Pass) {
	pass = pass.Bounded()
	s.Schema = Schema
	s.LastPass = &pass.StartedAt
	if pass.ExitStatus == 0 {
		s.LastClean = &pass.StartedAt
	}
	if s.PassTotals == nil {
		s.PassTotals = map[int]int{}
	}
	s.PassTotals[pass.ExitStatus]++
	if s.DirectionTotals == nil {
		s.DirectionTotals = map[string]Total{}
	}
	for direction, count := range pass.Summary {
		total := s.DirectionTotals[direction]
		total.Done += count.Done
		total.Kept += count.Kept
		total.Failed += count.Failed
		s.DirectionTotals[direction] = total
	}
	for _, hold := range pass.Holds {
		total := s.DirectionTotals[hold.Direction]
		if total.Held == nil {
			total.Held = map[string]int{}
		}
		total.Held[hold.Cause]++
		s.DirectionTotals[hold.Direction] = total
	}
	s.Passes = append([]Pass{pass}, s.Passes...)
	s.Passes = s.Passes[:min(maxPasses, len(s.Passes))]
}

// Bounded is the pass with its long lists cut, as it is kept.
func (p Pass) Bounded() Pass {
	pass := p
	pass.StartedAt = pass.StartedAt.UTC()
	pass.Holds, _ = cut(pass.Holds, func(h Hold) Hold { h.Reason = Shorten(h.Reason, maxText); return h })
	var leftOut int
	pass.Failures, leftOut = cut(pass.Failures, func(f Failure) Failure {
		f.Session, f.Detail = Shorten(f.Session, maxText), Shorten(f.Detail, maxText)
		return f
	})
	pass.FailuresLeftOut += leftOut
	pass.Notices, leftOut = cut(pass.Notices, func(n Notice) Notice {
		n.What, n.Reason = Shorten(n.What, maxText), Shorten(n.Reason, maxText)
		return n
	})
	pass.NoticesLeftOut += leftOut
	return pass
}

// cut keeps the first entries, shortened, and counts the others.
func cut[T any](list []T, shorten func(T) T) (kept []T, leftOut int) {
	for _, entry := range list[:min(maxListed, len(list))] {
		kept = append(kept, shorten(entry))
	}
	return kept, len(list) - len(kept)
}

// Shorten cuts a text to at most so many bytes, at the border of a character, and shows that it did.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const ellipsis = "…"
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
