package invariant

import (
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// machine is one virtual machine, from its creation to its end.
type machine struct {
	name, uid            string
	environment, session string
	// deadline is zero where its annotation is none.
	deadline time.Time
	// existsFrom is when it existed for certain; existsTo is until when it did: until somebody asked for its deletion, or until the
	// last that was heard of it.
	existsFrom, existsTo time.Time
	// created is its creation; nil where that is in no log.
	created *Write
	// amended is what an admin, and nobody else, may have made of it since.
	amended []amendment
}

// amendment is what a machine carries after an admin changed it.
type amendment struct {
	environment, session string
	deadline             time.Time
	arrived, answered    time.Time
}

// lastDeadline is the latest that it was ever given; false where it had none for a while.
func (m *machine) lastDeadline() (time.Time, bool) {
	last := m.deadline
	for _, a := range m.amended {
		if a.deadline.IsZero() {
			return time.Time{}, false
		}
		if a.deadline.After(last) {
			last = a.deadline
		}
	}
	return last, !m.deadline.IsZero()
}

// mayBePastDeadline tells whether a deadline that was in force while a request was under way had passed when it was answered.
func (m *machine) mayBePastDeadline(w Write) bool {
	inForce := []time.Time{m.deadline}
	for _, a := range m.amended {
		if !a.answered.After(w.Arrived) {
			inForce = inForce[:0]
		}
		if a.arrived.Before(w.Answered) {
			inForce = append(inForce, a.deadline)
		}
	}
	return slices.ContainsFunc(inForce, func(deadline time.Time) bool { return !deadline.IsZero() && !deadline.After(w.Answered) })
}

// machines are all that were heard of, with the labels that they had first. Nobody but an admin can change them: that is an invariant of
// its own.
type machines struct {
	all    []*machine
	byUID  map[string]*machine
	byName map[string]*machine
}

func newMachines(h *History) *machines {
	m := &machines{byUID: map[string]*machine{}, byName: map[string]*machine{}}
	var end time.Time
	for i := range h.Writes {
		w := &h.Writes[i]
		end = w.Answered
		if h.onMachines(*w) {
			m.hear(h, w)
		}
	}
	for _, found := range m.all {
		if found.existsTo.IsZero() {
			found.existsTo = end
		}
		// What was not heard of after an API server died may have gone with it.
		for _, died := range h.Interruptions {
			if died.After(found.existsFrom) && died.Before(found.existsTo) && !found.heardAfter(h, died) {
				found.existsTo = died
			}
		}
	}
	return m
}

// hear learns from one request. They come in the order of their answers: whatever a request shows existed when it was answered.
func (m *machines) hear(h *History, w *Write) {
	if w.Object != nil && w.Object.UID != "" && w.succeeded() && w.Sub == "" {
		if known := m.byUID[w.Object.UID]; known == nil {
			m.add(h, w)
		} else if w.changes() && h.requester(*w).Kind == lab.Admin {
			known.amended = append(known.amended, h.amendment(w))
		}
	}
	if !w.deletes() || !w.mayHaveSucceeded() {
		return
	}
	if w.Verb == "deletecollection" {
		// Whom it meets is not in the log.
		for _, found := range m.all {
			found.endBy(w.Arrived)
		}
		return
	}
	if found := m.byName[w.Name]; found != nil && (w.Precondition == "" || w.Precondition == found.uid) {
		found.endBy(w.Arrived)
	}
}

func (m *machines) add(h *History, w *Write) {
	carries := h.amendment(w)
	found := &machine{
		name: w.Name, uid: w.Object.UID, environment: carries.environment, session: carries.session, deadline: carries.deadline,
		existsFrom: w.Answered,
	}
	if w.Verb == "create" {
		found.created = w
	}
	if before := m.byName[w.Name]; before != nil {
		// It must have gone for this one to come to be, whoever saw to that.
		before.endBy(w.Arrived)
	}
	m.all = append(m.all, found)
	m.byUID[found.uid], m.byName[found.name] = found, found
}

// amendment is what a machine carries in the answer to a request.
func (h *History) amendment(w *Write) amendment {
	labels := h.Configuration.Labels
	a := amendment{environment: w.Object.Labels[labels.Environment], session: w.Object.Labels[labels.Session], arrived: w.Arrived, answered: w.Answered}
	if deadline, err := lab.ParseDeadline(w.Object.Annotations[lab.DeadlineAnnotation]); err == nil {
		a.deadline = deadline
	}
	return a
}

// endBy notes that it may not exist any more from a moment on.
func (m *machine) endBy(at time.Time) {
	if m.existsTo.IsZero() || at.Before(m.existsTo) {
		m.existsTo = at
	}
	if m.existsTo.Before(m.existsFrom) {
		m.existsTo = m.existsFrom
	}
}

// heardAfter tells whether a request that arrived after a moment shows that it still exists.
func (m *machine) heardAfter(h *History, at time.Time) bool {
	for _, w := range h.Writes {
		if w.Arrived.After(at) && h.onMachines(w) && w.Object != nil && w.Object.UID == m.uid {
			return true
		}
	}
	return false
}
