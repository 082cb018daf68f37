package reap

import "time"

// stuckAfter is how long a machine may be terminating before a person should look: ten times a guest's grace period.
const stuckAfter = 5 * time.Minute

// noticeStuck reports the machines of this environment whose deletion was asked for and that do not go: KubeVirt or a node is at
// fault, and asking again changes nothing. They hold their memory all the while. It needs no database.
func noticeStuck(v view, plan *Plan) {
	for _, object := range v.Objects {
		if !object.Kind.Machine || object.Deleting == nil || !v.ours(object) || v.owned(object) {
			continue
		}
		if age := v.ListedAt.Sub(*object.Deleting); age > stuckAfter {
			plan.notice(Deadline, object.String(), "has been terminating for %s; it is not deleted again (look at its finalizers)", age.Round(time.Second))
		}
	}
}
