package invariant

import "time"

// key names an object of any kind. A name stands for one object at a time.
type key struct{ resource, namespace, name string }

// belonging is whose an object is that was created under a name.
type belonging struct {
	uid                  string
	environment, session string
	// machine is a virtual machine; else nil.
	machine *machine
	// createdFrom and createdBy bound the moment of its creation.
	createdFrom, createdBy time.Time
}

// belongings knows whose the objects are that were created while somebody looked.
type belongings map[key][]belonging

func newBelongings(h *History, machines *machines) belongings {
	b := belongings{}
	for _, w := range h.Writes {
		if w.Verb != "create" || w.Sub != "" || w.Name == "" || !w.succeeded() {
			continue
		}
		owned := belonging{environment: w.Environment, session: w.Session, createdFrom: w.Arrived, createdBy: w.Answered}
		if o := w.Object; o != nil {
			owned.uid = o.UID
			owned.environment, owned.session = o.Labels[h.Configuration.Labels.Environment], o.Labels[h.Configuration.Labels.Session]
			owned.machine = machines.byUID[o.UID]
		}
		k := key{w.Resource, w.Namespace, w.Name}
		b[k] = append(b[k], owned)
	}
	return b
}

// met gives the object that a request on a name met, where only one comes into question.
func (b belongings) met(w Write) (belonging, bool) {
	var found belonging
	candidates := 0
	for _, owned := range b[key{w.Resource, w.Namespace, w.Name}] {
		if w.Precondition != "" && owned.uid != "" && owned.uid != w.Precondition {
			continue
		}
		switch {
		case !owned.createdBy.After(w.Arrived):
			// It, or one that came after it.
			found, candidates = owned, 1
		case owned.createdFrom.Before(w.Answered):
			candidates++
		}
	}
	return found, candidates == 1 && !found.createdBy.IsZero()
}
