package reap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// randomWorld is a snapshot of anything that may come together, contradictions included: few ids and names, so that they meet.
func randomWorld(random *rand.Rand) Snapshot {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	at := func() *time.Time {
		if random.IntN(6) == 0 {
			return nil
		}
		return new(minutes(random.IntN(400) - 200))
	}
	var rows []Session
	for _, id := range []string{"a", "b", "c", "d"} {
		if random.IntN(2) == 0 {
			continue
		}
		expires := at()
		rows = append(rows, Session{
			ID: id, Runtime: pick("vm", "vm", "pod", ""), Status: pick("running", "running", "starting", "paused", ""),
			VMName: pick("", "lab-a", "lab-b", "lab-c"), StartedAt: at(), ExpiresAt: expires,
			PastEnd: (expires != nil && !expires.After(noon)) || (expires == nil && random.IntN(2) == 0),
		})
	}
	var objects []Object
	for i := range random.IntN(8) {
		object := machine(pick("a", "b", "c", "d", "e", ""), of([]Kind{VirtualMachine, VirtualMachineInstance, Secret, Service, Pod}[random.IntN(5)]),
			in(pick("prod", "prod", "dev", "")), created(minutes(-random.IntN(20))), deadline(pick("", "soon", "2026-11-29T11:00:00Z", "2026-11-29T13:00:00Z")))
		object.Name, object.UID = pick("lab-a", "lab-b", "lab-a-cloudinit", "lab-c-cloudinit"), object.UID+"-"+newUID(i)
		if random.IntN(5) == 0 {
			object.Deleting = at()
		}
		objects = append(objects, object)
	}
	s := world(objects, rows...)
	s.Rows.Fence = pick("prod", "prod", "prod", "dev", "")
	s.Rows.ReadOnly = random.IntN(8) == 0
	return s
}

// TestNoPlanTouchesALiveSessionOrAnotherEnvironment makes a great many plans and checks what must hold for each.
func TestNoPlanTouchesALiveSessionOrAnotherEnvironment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	settings := testSettings()
	settings.Released = BrakeNames()
	planned := map[Direction]int{}
	for range 10_000 {
		s := randomWorld(random)
		rows := map[string]Session{}
		for _, row := range s.Rows.Sessions {
			rows[row.ID] = row
		}
		plan := MakePlan(s, settings)
		for _, action := range plan.Actions {
			planned[action.Direction]++
			row, known := rows[action.Session]
			fault := ""
			switch {
			case action.Direction != Deadline && (s.Rows.Fence != "prod" || s.Rows.ReadOnly):
				fault = "acts on a database that is not believed"
			case action.Direction == Expired && (!known || !row.PastEnd || (row.Status != "running" && row.Status != "starting")):
				fault = "expires what is not a live session past its end"
			case action.Direction == Orphan && known:
				fault = "takes what has a row for an orphan"
			case action.Direction == Ghost && (len(action.Objects) > 0 || row.Status != "running" || row.PastEnd):
				fault = "takes for a ghost what is none"
			}
			for _, object := range action.Objects {
				switch {
				case object.Environment == "dev":
					fault = "touches another environment's " + object.String()
				case object.Environment == "" && action.Direction != Expired:
					fault = "guesses the owner of " + object.String()
				case action.Direction != Deadline && object.Session != "" && object.Session != action.Session:
					fault = "takes another session's " + object.String()
				case object.Deleting != nil:
					fault = "deletes what is going: " + object.String()
				}
			}
			if fault != "" {
				t.Fatalf("seed %d: the plan %s\naction %+v\nrow %+v\nsnapshot %+v", seed, fault, action, row, s)
			}
		}
		if again := MakePlan(s, settings); !slices.Equal(lines(plan), lines(again)) {
			t.Fatalf("seed %d: one snapshot gave two plans:\n%v\n%v", seed, lines(plan), lines(again))
		}
	}
	for _, direction := range Directions() {
		if planned[direction] == 0 {
			t.Errorf("no plan had an action of direction %s: the worlds are too tame", direction)
		}
	}
}

func newUID(i int) types.UID { return types.UID(fmt.Sprint(i)) }
