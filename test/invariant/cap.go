package invariant

import (
	"cmp"
	"slices"
	"time"
)

// caps judges how many machines existed at the same time.
func (j *judge) caps() {
	caps := j.Configuration.Caps
	j.cap("the namespace", caps.VMs, func(*machine) string { return j.Configuration.VMNamespace })
	for _, environment := range j.Configuration.Environments {
		if environment.Cap != nil {
			j.cap("environment", *environment.Cap, func(m *machine) string {
				if m.environment != environment.Name {
					return ""
				}
				return m.environment
			})
		}
	}
	j.cap("session", caps.Session, func(m *machine) string {
		if m.session == "" {
			return ""
		}
		// Two environments may have a session of one id.
		return m.environment + "/" + m.session
	})
}

// moment is when a machine comes or goes.
type moment struct {
	at      time.Time
	machine *machine
	comes   bool
}

// cap judges one cap: at no moment more machines of one group than its limit. A machine of the group "" is in none.
func (j *judge) cap(what string, limit int, group func(*machine) string) {
	var moments []moment
	for _, m := range j.machines.all {
		if group(m) != "" && m.existsTo.After(m.existsFrom) {
			moments = append(moments, moment{m.existsFrom, m, true}, moment{m.existsTo, m, false})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int {
		if a.at.Equal(b.at) && a.comes != b.comes {
			// Whoever may have gone has.
			if b.comes {
				return -1
			}
			return 1
		}
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.machine.uid, b.machine.uid))
	})
	count := map[string]int{}
	for _, moment := range moments {
		name := group(moment.machine)
		if !moment.comes {
			count[name]--
			continue
		}
		count[name]++
		if count[name] > limit {
			j.violated(Cap, moment.at, "", "%s %s has %d machines, and may have %d; the last is %s", what, name, count[name], limit, moment.machine.name)
		}
	}
}

// deadlines judges how long machines existed.
func (j *judge) deadlines() {
	if j.DeadlineSlack == 0 {
		return
	}
	for _, m := range j.machines.all {
		if deadline, has := m.lastDeadline(); has && m.existsTo.After(deadline.Add(j.DeadlineSlack)) {
			j.violated(Deadline, m.existsTo, "", "machine %s still existed, %s after its deadline", m.name, m.existsTo.Sub(deadline))
		}
	}
}
