package reap

import "fmt"

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
		if object.Deleting != nil || v.ListedAt.Sub(object.Created) < v.settings.OrphanMinimumAge {
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
