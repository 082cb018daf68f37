package reap

import (
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// planDeadline finds the virtual machines of this environment that outlived their deadline. It needs no database.
func planDeadline(v view, plan *Plan) {
	var actions []Action
	for _, object := range v.Objects {
		if object.Kind != VirtualMachine || !v.ours(object) || object.Deadline == "" || object.Deleting != nil {
			continue
		}
		deadline, err := lab.ParseDeadline(object.Deadline)
		if err != nil {
			plan.notice(Deadline, object.String(), "%v; it is kept", err)
			continue
		}
		if !v.ListedAt.After(deadline) {
			continue
		}
		actions = append(actions, Action{
			Direction: Deadline,
			Session:   object.Session,
			Objects:   []Object{object},
			Reason:    "its deadline " + object.Deadline + " has passed",
			Since:     deadline,
		})
	}
	plan.Actions = append(plan.Actions, byAge(actions)...)
}

// stillPastDeadline judges a virtual machine that was read afresh: an admin may have given it more time. The time is asked for after that,
// since the answer may have set the clock right.
func stillPastDeadline(planned Object, now func() time.Time) judgement {
	return func(fresh Object) string {
		if reason := still(planned)(fresh); reason != "" {
			return reason
		}
		deadline, err := lab.ParseDeadline(fresh.Deadline)
		if err != nil {
			return err.Error()
		}
		if !now().After(deadline) {
			return "its deadline is " + fresh.Deadline + " now"
		}
		return ""
	}
}
