package invariant

import (
	"fmt"
	"slices"
	"time"
)

// The invariants. docs/reliability.md says what each of them means.
const (
	LiveSession          = "LiveSession"
	EnvironmentForeign   = "EnvironmentForeign"
	Cap                  = "Cap"
	Deadline             = "Deadline"
	Stamp                = "Stamp"
	Immutable            = "Immutable"
	RequesterUnknown     = "RequesterUnknown"
	Denial               = "Denial"
	DeletionPrecondition = "DeletionPrecondition"
	DeletionReach        = "DeletionReach"
	RowGuard             = "RowGuard"
	RowBeforeMachine     = "RowBeforeMachine"
)

// Invariants names all that are judged.
func Invariants() []string {
	return []string{
		LiveSession, EnvironmentForeign, Cap, Deadline, Stamp, Immutable, RequesterUnknown, Denial, DeletionPrecondition, DeletionReach,
		RowGuard, RowBeforeMachine,
	}
}

// judge is what every invariant is judged by.
type judge struct {
	*History
	machines   *machines
	belongings belongings
	sessions   sessions
	verdict    Verdict
}

// Check judges a history.
func Check(h *History) Verdict {
	found := newMachines(h)
	j := &judge{History: h, machines: found, belongings: newBelongings(h, found), sessions: newSessions(h)}
	j.verdict = Verdict{Violations: []Violation{}, Machines: len(found.all), Changes: len(h.Changes), Writes: len(h.Writes)}
	for i := range h.Writes {
		w := &h.Writes[i]
		j.requester(w)
		j.denial(w)
		j.stamp(w)
		j.immutable(w)
		j.environment(w)
		j.deletion(w)
	}
	j.caps()
	j.deadlines()
	j.rows()
	slices.SortStableFunc(j.verdict.Violations, func(a, b Violation) int { return a.At.Compare(b.At) })
	return j.verdict
}

func (j *judge) violated(invariant string, at time.Time, auditID, format string, arguments ...any) {
	j.verdict.Violations = append(j.verdict.Violations, Violation{
		Invariant: invariant, At: at, AuditID: auditID, What: fmt.Sprintf(format, arguments...),
	})
}

func (j *judge) violatedBy(invariant string, w *Write, format string, arguments ...any) {
	what := fmt.Sprintf(format, arguments...)
	j.violated(invariant, w.Answered, w.AuditID, "%s %s %s %s/%s: %s", w.Username, w.Verb, w.Resource, w.Namespace, w.Name, what)
}
