package reap

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Direction is one of the ways in which cluster and sessions table come to disagree.
type Direction string

// The directions, in the order in which they are applied. Deadline comes first: it needs no database, and no hanging one may
// keep it from its turn.
const (
	Deadline Direction = "deadline"
	Expired  Direction = "expired"
	Orphan   Direction = "orphan"
	Ghost    Direction = "ghost"
)

// Directions lists them in their order.
func Directions() []Direction { return []Direction{Deadline, Expired, Orphan, Ghost} }

// Action is one item of work, done or failed for itself.
type Action struct {
	Direction Direction
	// Session is the row's id, or what the object's label says.
	Session string
	// Objects are deleted in this order. An Expired action may have none: then only the row changes.
	Objects []Object
	// Row is what an Expired or a Ghost action changes; nil for the others.
	Row *Session
	// Reason says why, in words for a person.
	Reason string
	// Since is when the reason came to be.
	Since time.Time
}

// Hold is a direction that a pass does not go in, as a whole.
type Hold struct {
	Direction Direction
	Cause     HoldCause
	Reason    string
}

// HoldCause tells the kinds of Hold apart: they end in different exit statuses.
type HoldCause string

const (
	// Aborted means that something that the direction depends on could not be read whole.
	Aborted HoldCause = "Aborted"
	// Fenced means that the database is not this environment's.
	Fenced HoldCause = "Fenced"
	// Braked means that more turned up than can be true, or the clocks disagree.
	Braked HoldCause = "Braked"
)

// Notice is something that a pass keeps and a person should know of.
type Notice struct {
	Direction Direction
	// What names an object or a session.
	What   string
	Reason string
}

// Plan is what a pass will do, and what it will not and why.
type Plan struct {
	Actions []Action
	Holds   []Hold
	Notices []Notice
}

// Of gives the actions of one direction.
func (p Plan) Of(direction Direction) []Action {
	var actions []Action
	for _, action := range p.Actions {
		if action.Direction == direction {
			actions = append(actions, action)
		}
	}
	return actions
}

func (p *Plan) hold(cause HoldCause, reason string, directions ...Direction) {
	for _, direction := range directions {
		p.Holds = append(p.Holds, Hold{Direction: direction, Cause: cause, Reason: reason})
	}
}

func (p *Plan) notice(direction Direction, what, reason string, arguments ...any) {
	p.Notices = append(p.Notices, Notice{Direction: direction, What: what, Reason: fmt.Sprintf(reason, arguments...)})
}

// MakePlan judges a snapshot. It is a pure function: the same snapshot and settings give the same plan, in the same order.
func MakePlan(s Snapshot, settings Settings) Plan {
	plan := Plan{}
	v := newView(s, settings)
	open := openDirections(s, settings, &plan)
	for _, direction := range []struct {
		name  Direction
		judge func(view, *Plan)
	}{{Deadline, planDeadline}, {Expired, planExpired}, {Orphan, planOrphans}, {Ghost, planGhosts}} {
		if open[direction.name] {
			direction.judge(v, &plan)
		}
	}
	noticeStuck(v, &plan)
	applyBrakes(v, &plan)
	return plan
}

// openDirections tells which directions the snapshot is good enough for, and enters the others as holds.
func openDirections(s Snapshot, settings Settings, plan *Plan) map[Direction]bool {
	open := map[Direction]bool{}
	needDatabase := []Direction{Expired, Orphan, Ghost}
	switch {
	case s.MachinesErr != nil:
		plan.hold(Aborted, s.MachinesErr.Error(), Directions()...)
		return open
	case s.WithoutRows == "" && s.RowsErr == nil && clocksApart(s, settings):
		plan.hold(Braked, fmt.Sprintf("the clocks of database (%s) and API server (%s) are more than %s apart; nobody knows what is due",
			s.Rows.Now.UTC().Format(time.RFC3339), s.ListedAt.UTC().Format(time.RFC3339), settings.Brakes.ClockDifference.Duration), Directions()...)
		return open
	}
	open[Deadline] = true
	switch {
	case s.WithoutRows != "":
		plan.notice(Deadline, "environment "+settings.Environment, "%s; only deadlines are looked at", s.WithoutRows)
	case s.RowsErr != nil:
		plan.hold(Aborted, s.RowsErr.Error(), needDatabase...)
	case s.Rows.Fence != settings.Environment:
		plan.hold(Fenced, fenceReason(s.Rows.Fence, settings.Environment), needDatabase...)
	case s.Rows.ReadOnly:
		plan.hold(Aborted, readOnlyReason, needDatabase...)
	case s.ObjectsErr != nil:
		plan.hold(Aborted, s.ObjectsErr.Error(), needDatabase...)
	default:
		for _, direction := range needDatabase {
			open[direction] = true
		}
	}
	return open
}

// readOnlyReason says why a database that takes no writes is not believed: after a fail-over it may be a standby that lags, in
// which the newest sessions are missing.
const readOnlyReason = "the database is read-only, as a standby is; what it says may be old, and nothing can be written to it"

// fenceReason says what is wrong with the database's fence. On 2026-09-12 a development reaper judged production's virtual
// machines by its own database; behind the fence it would have stopped here.
func fenceReason(fence, environment string) string {
	if fence == "" {
		return fmt.Sprintf("the database does not say which environment it is of; have its owner run: ALTER DATABASE … SET %s = '%s'", fenceSetting, environment)
	}
	return fmt.Sprintf("the database says that it is environment %q (%s), and this reaper is of %q; check DATABASE_URL and --environment", fence, fenceSetting, environment)
}

// byAge orders actions by what has waited longest.
func byAge(actions []Action) []Action {
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Session, b.Session))
	})
	return actions
}
