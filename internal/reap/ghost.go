package reap

// planGhosts finds the rows that the database calls running and that no virtual machine stands for. Without this a student
// whose machine was lost could never start another lesson: there is one live session for each.
func planGhosts(v view, plan *Plan) {
	var actions []Action
	for i := range v.Rows.Sessions {
		row := &v.Rows.Sessions[i]
		if row.Status != v.settings.Words.Running || row.Runtime != v.settings.Runtimes.VM || row.PastEnd || v.hasMachine(*row) {
			continue
		}
		switch {
		case row.StartedAt == nil:
			plan.notice(Ghost, "session "+row.ID, "is running without a start and without a virtual machine; it is kept until its end")
		case v.Rows.Now.Sub(*row.StartedAt) < v.settings.StartupGrace:
		case row.VMName == "":
			plan.notice(Ghost, "session "+row.ID, "is running without the name of a virtual machine; it is kept until its end")
		default:
			actions = append(actions, Action{
				Direction: Ghost,
				Session:   row.ID,
				Row:       row,
				Reason:    "virtual machine " + row.VMName + " does not exist",
				Since:     *row.StartedAt,
			})
		}
	}
	plan.Actions = append(plan.Actions, byAge(actions)...)
}

// hasMachine looks through the whole list, labelled or not, whatever environment it is of: a machine that is stopped,
// restarting or terminating is one.
func (v view) hasMachine(row Session) bool {
	if _, found := v.vmsByName[row.VMName]; found {
		return true
	}
	for _, object := range v.bySession[row.ID] {
		if object.Kind.Machine {
			return true
		}
	}
	return false
}
