package reap

import (
	"fmt"
	"slices"

	"github.com/ttlab/vmwarden/internal/config"
)

// BrakeName names a brake that an admin can release for one pass.
type BrakeName string

// The brakes.
const (
	OrphanBrake BrakeName = "orphan"
	GhostBrake  BrakeName = "ghost"
	ClockBrake  BrakeName = "clock"
)

// BrakeNames lists the brakes.
func BrakeNames() []BrakeName { return []BrakeName{OrphanBrake, GhostBrake, ClockBrake} }

func (s Settings) released(name BrakeName) bool { return slices.Contains(s.Released, name) }

// clocksApart tells whether database and machine disagree about the time by more than can be lived with.
func clocksApart(s Snapshot, settings Settings) bool {
	return !settings.released(ClockBrake) && s.Rows.Now.Sub(s.ListedAt).Abs() > settings.Brakes.ClockDifference.Duration
}

// applyBrakes holds back a direction in which more turned up than can be true: then the database is wrong, not the machines.
// Only machines are counted. A wrong database shows in them, and old Secrets without one must not keep a direction shut.
func applyBrakes(v view, plan *Plan) {
	orphans := 0
	for _, action := range plan.Of(Orphan) {
		if action.Objects[0].Kind.Machine {
			orphans++
		}
	}
	machines := 0
	for _, object := range v.Objects {
		if object.Kind.Machine && v.ours(object) && object.Session != "" && !v.owned(object) {
			machines++
		}
	}
	v.brake(plan, Orphan, OrphanBrake, v.settings.Brakes.Orphans, orphans, machines, "machines are orphans")

	running := 0
	for _, row := range v.Rows.Sessions {
		if row.Status == v.settings.Words.Running && row.Runtime == v.settings.Runtimes.VM {
			running++
		}
	}
	v.brake(plan, Ghost, GhostBrake, v.settings.Brakes.Ghosts, len(plan.Of(Ghost)), running, "running sessions have no virtual machine")
}

func (v view) brake(plan *Plan, direction Direction, name BrakeName, brake config.Brake, lost, of int, what string) {
	tooMany := lost > brake.MaxCount
	tooLargeAShare := lost >= brake.ShareFloor && lost*100 > of*brake.MaxSharePercent
	if v.settings.released(name) || (!tooMany && !tooLargeAShare) {
		return
	}
	plan.Actions = slices.DeleteFunc(plan.Actions, func(action Action) bool { return action.Direction == direction })
	plan.hold(Braked, fmt.Sprintf("%d of %d %s, more than can be true (at most %d, or %d %% from %d on): check the database, then let one pass through with --release-brake=%s",
		lost, of, what, brake.MaxCount, brake.MaxSharePercent, brake.ShareFloor, name), direction)
}
