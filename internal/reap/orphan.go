package reap

import (
	"fmt"
	"time"
)

// stuckAfter is how long a machine may be terminating before a person should look: ten times a guest's grace period.
const stuckAfter = 5 * time.Minute

// planOrphans finds the lab objects of this environment that no row stands for. One without an environment label is reported
// and kept: its owner is not guessed.
func planOrphans(v view, plan *Plan) {
	var actions []Action
	for _, object := range v.Objects {
		if object.Session == "" || v.rows[object.Session] != nil || v.owned(object) {
			continue
		}
		if object.Environment == "" {
			plan.notice(Orphan, object.String(), "carries session %s, which is not live here, and no environment label; its owner is not guessed", object.Session)
			continue
		}
		if !v.ours(object) {
			continue
		}
		if object.Deleting != nil {
			if since := v.ListedAt.Sub(*object.Deleting); object.Kind.Machine && since > stuckAfter {
				plan.notice(Orphan, object.String(), "has been terminating for %s; it is not deleted again (look at its finalizers)", since.Round(time.Second))
			}
			continue
		}
		if v.ListedAt.Sub(object.Created) < v.settings.OrphanMinimumAge {
			continue
		}
		actions = append(actions, Action{
			Direction: Orphan,
			Session:   object.Session,
			Objects:   []Object{object},
			Reason:    fmt.Sprintf("no live session of environment %s has its id", v.settings.Environment),
			Since:     object.Created,
		})
	}
	plan.Actions = append(plan.Actions, byAge(actions)...)
}

// stillOrphan judges an object that was read afresh, and says why it is kept, or nothing.
func stillOrphan(planned Object, environment string) func(Object) string {
	return func(fresh Object) string {
		switch {
		case fresh.Environment != environment:
			return fmt.Sprintf("its environment is %q now", fresh.Environment)
		case fresh.Session != planned.Session:
			return fmt.Sprintf("its session is %q now", fresh.Session)
		}
		return ""
	}
}
