package reap

import (
	"fmt"
	"slices"
)

// planExpired finds the live rows whose end has passed by the database's clock.
func planExpired(v view, plan *Plan) {
	var actions []Action
	for i := range v.Rows.Sessions {
		row := &v.Rows.Sessions[i]
		what := "session " + row.ID
		if !v.live(*row) {
			plan.notice(Expired, what, "has the unknown status %q; its objects are kept (map the word in database.statuses)", row.Status)
			continue
		}
		if !row.PastEnd {
			continue
		}
		if doubt := endInDoubt(*row); doubt != "" {
			plan.notice(Expired, what, "%s; it is kept until its deadline", doubt)
			continue
		}
		objects, foreign := v.sessionObjects(*row)
		if foreign != nil {
			plan.notice(Expired, what, "has expired, but %s carries its id and belongs to environment %q; both are kept", foreign, foreign.Environment)
			continue
		}
		actions = append(actions, Action{
			Direction: Expired,
			Session:   row.ID,
			Objects:   objects,
			Row:       row,
			Reason:    "its end has passed",
			Since:     *row.ExpiresAt,
		})
	}
	plan.Actions = append(plan.Actions, byAge(actions)...)
}

// endInDoubt tells why an end that has passed is not to be believed: no student ends a lesson before it starts.
func endInDoubt(row Session) string {
	switch {
	case row.ExpiresAt == nil:
		return "its end is no point in time"
	case row.StartedAt != nil && row.ExpiresAt.Before(*row.StartedAt):
		return fmt.Sprintf("its end (%s) is before its start (%s)", row.ExpiresAt.UTC(), row.StartedAt.UTC())
	}
	return ""
}

// sessionObjects gives what a session owns, in the order of deletion: the objects that carry its id, the virtual machine that
// its row names even where that carries no label (one from before the labels), and the Secrets that are its by name. An object
// of another environment under the same id is a contradiction, given as foreign.
func (v view) sessionObjects(row Session) (objects []Object, foreign *Object) {
	candidates := slices.Clone(v.bySession[row.ID])
	if named, found := v.vmsByName[row.VMName]; found && named.Session == "" && v.vmNameClaims[row.VMName] == 1 {
		candidates = append(candidates, named)
	}
	candidates = append(candidates, v.secretsOfName(row, candidates)...)
	for i, object := range candidates {
		if object.Environment != "" && !v.ours(object) {
			return nil, &candidates[i]
		}
		if object.Deleting == nil && !v.owned(object) {
			objects = append(objects, object)
		}
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return deletionRank(a.Kind) - deletionRank(b.Kind) })
	return objects, nil
}

func deletionRank(kind Kind) int {
	return slices.Index([]Kind{VirtualMachine, VirtualMachineInstance, Pod, Secret, Service, NetworkPolicy}, kind)
}
