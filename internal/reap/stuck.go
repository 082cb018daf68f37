package reap

import (
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// noticeStuck reports the machines of this environment whose deletion was asked for and that do not go: KubeVirt or a node is at
// fault, and asking again changes nothing. They hold their memory all the while. It needs no database.
func noticeStuck(v view, plan *Plan) {
	for _, object := range v.Objects {
		if !object.Kind.Machine || object.Deleting == nil || !v.ours(object) || v.owned(object) {
			continue
		}
		if age := v.ListedAt.Sub(*object.Deleting); age > lab.StuckAfter {
			plan.notice(Deadline, object.String(), "has been terminating for %s; it is not deleted again (look at its finalizers)", age.Round(time.Second))
		}
	}
}
