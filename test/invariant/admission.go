package invariant

import (
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// lateness is how much later than ours a deadline may be that somebody brings along (docs/denials.md, DeadlineTooLate).
const lateness = 2 * time.Minute

// requester judges who may write lab machines at all.
func (j *judge) requester(w *Write) {
	if j.onMachines(*w) && w.succeeded() && j.History.requester(*w).Kind == lab.Unknown {
		j.violatedBy(RequesterUnknown, w, "nobody knows the requester, and it was done")
	}
}

// denial judges whether what was denied was not done.
func (j *judge) denial(w *Write) {
	if w.Denied && w.succeeded() {
		j.violatedBy(Denial, w, "it was denied, and done all the same")
	}
}

// stamp judges what a machine carries that a backend created.
func (j *judge) stamp(w *Write) {
	requester := j.History.requester(*w)
	if !j.onMachines(*w) || w.Verb != "create" || w.Sub != "" || !w.succeeded() || w.Object == nil || requester.Kind != lab.Backend {
		return
	}
	labels, o := j.Configuration.Labels, w.Object
	for _, key := range []string{labels.Environment, labels.Session} {
		if o.Labels[key] == "" || o.TemplateLabels[key] != o.Labels[key] {
			j.violatedBy(Stamp, w, "label %s is %q, and %q in the template", key, o.Labels[key], o.TemplateLabels[key])
		}
	}
	if o.Labels[labels.Environment] != requester.Environment {
		j.violatedBy(Stamp, w, "label %s is %q, and the requester's environment %q", labels.Environment, o.Labels[labels.Environment], requester.Environment)
	}
	if by := o.Annotations[lab.CreatedByAnnotation]; by != w.Username {
		j.violatedBy(Stamp, w, "annotation %s is %q", lab.CreatedByAnnotation, by)
	}
	latest := j.Configuration.Contract().Lifetimes.Deadline(w.Answered).Add(lateness)
	if deadline, err := lab.ParseDeadline(o.Annotations[lab.DeadlineAnnotation]); err != nil || deadline.After(latest) {
		j.violatedBy(Stamp, w, "annotation %s is %q, and may be at most %s", lab.DeadlineAnnotation, o.Annotations[lab.DeadlineAnnotation], lab.FormatDeadline(latest))
	}
}

// immutable judges what a change may not change.
func (j *judge) immutable(w *Write) {
	if !j.onMachines(*w) || !w.changes() || !w.succeeded() || w.Object == nil || j.History.requester(*w).Kind == lab.Admin {
		return
	}
	known := j.machines.byUID[w.Object.UID]
	if known == nil {
		return
	}
	labels, got := j.Configuration.Labels, j.amendment(w)
	byAdmin := func(same func(amendment) bool) bool { return slices.ContainsFunc(known.amended, same) }
	if got.environment != known.environment && !byAdmin(func(a amendment) bool { return a.environment == got.environment }) {
		j.violatedBy(Immutable, w, "label %s was %q and is %q", labels.Environment, known.environment, got.environment)
	}
	if got.session != known.session && !byAdmin(func(a amendment) bool { return a.session == got.session }) {
		j.violatedBy(Immutable, w, "label %s was %q and is %q", labels.Session, known.session, got.session)
	}
	if !known.deadline.IsZero() && !got.deadline.Equal(known.deadline) && !byAdmin(func(a amendment) bool { return a.deadline.Equal(got.deadline) }) {
		j.violatedBy(Immutable, w, "annotation %s was %s and is %q", lab.DeadlineAnnotation, lab.FormatDeadline(known.deadline), w.Object.Annotations[lab.DeadlineAnnotation])
	}
}

// environment judges who changes and deletes whose objects.
func (j *judge) environment(w *Write) {
	requester := j.History.requester(*w)
	if !requester.ActsForEnvironment() || !w.succeeded() || (!w.changes() && !w.deletes()) {
		return
	}
	if met, certain := j.belongings.met(*w); certain && met.environment != "" && met.environment != requester.Environment {
		j.violatedBy(EnvironmentForeign, w, "it belongs to environment %q", met.environment)
	}
}
