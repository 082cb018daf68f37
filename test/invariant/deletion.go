package invariant

import (
	"slices"

	"github.com/ttlab/vmwarden/internal/lab"
)

// reachable are the resources that a reaper may delete. A volume is none of them.
var reachable = []string{"virtualmachines", "virtualmachineinstances", "pods", "secrets", "services", "networkpolicies"}

// deletion judges what a reaper deleted.
func (j *judge) deletion(w *Write) {
	requester := j.History.requester(*w)
	if requester.Kind != lab.Reaper || !w.deletes() || !w.succeeded() {
		return
	}
	j.verdict.Deletions++
	namespaces := append([]string{j.Configuration.VMNamespace}, j.Configuration.PodNamespaces...)
	if w.Verb != "delete" || w.Sub != "" || !slices.Contains(reachable, w.Resource) || !slices.Contains(namespaces, w.Namespace) {
		j.violatedBy(DeletionReach, w, "this is not a reaper's to delete")
		return
	}
	if w.BodyKnown && w.Precondition == "" {
		j.violatedBy(DeletionPrecondition, w, "it was not asked for under a UID")
	}
	if w.Orphans {
		j.violatedBy(DeletionPrecondition, w, "what it owns was to be left behind")
	}
	met, certain := j.belongings.met(*w)
	if !certain || met.session == "" {
		return
	}
	if met.machine != nil && met.machine.mayBePastDeadline(*w) {
		// Past its deadline nothing may exist, whatever the row says.
		return
	}
	if j.sessions.liveThroughout(sessionKey{requester.Environment, met.session}, w.Arrived, w.Answered) {
		j.violatedBy(LiveSession, w, "session %s was live all the while", met.session)
	}
}
