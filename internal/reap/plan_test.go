package reap

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func testSettings() Settings {
	return Settings{
		Environment:      "prod",
		Labels:           lab.Labels{Session: "ttlab.io/session", Environment: "ttlab.io/env"},
		Words:            config.Statuses{Starting: "starting", Running: "running", Expired: "expired", Failed: "failed", Ended: []string{"finished"}},
		Runtimes:         config.Runtimes{VM: "vm", Pod: "pod"},
		SecretNames:      []string{"{vm}-cloudinit", "lab-{session8}-cloudinit"},
		OrphanMinimumAge: 5 * time.Minute,
		StartupGrace:     10 * time.Minute,
		Brakes: config.Brakes{
			Orphans: config.Brake{MaxCount: 4, MaxSharePercent: 50, ShareFloor: 3},
			Ghosts:  config.Brake{MaxCount: 4, MaxSharePercent: 50, ShareFloor: 3},

			ClockDifference: metav1.Duration{Duration: 3 * time.Minute},
		},
	}
}

func minutes(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// machine is a virtual machine of a session of prod, an hour old.
func machine(session string, changes ...func(*Object)) Object {
	o := Object{Kind: VirtualMachine, Namespace: "lab-vms", Name: "lab-" + session, UID: types.UID("uid-" + session), Session: session, Environment: "prod", Created: minutes(-60)}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func of(kind Kind) func(*Object) {
	return func(o *Object) { o.Kind, o.UID = kind, types.UID(kind.Name+string(o.UID)) }
}
func in(environment string) func(*Object) { return func(o *Object) { o.Environment = environment } }
func created(at time.Time) func(*Object)  { return func(o *Object) { o.Created = at } }
func deadline(value string) func(*Object) { return func(o *Object) { o.Deadline = value } }
func deleting(at time.Time) func(*Object) { return func(o *Object) { o.Deleting = &at } }
func unlabelled(o *Object)                { o.Session, o.Environment = "", "" }
func ownedBy(uid types.UID) func(*Object) { return func(o *Object) { o.Owners = []types.UID{uid} } }

// secretNamed is a Secret without labels.
func secretNamed(name string, changes ...func(*Object)) Object {
	o := Object{Kind: Secret, Namespace: "lab-vms", Name: name, UID: types.UID("uid-" + name), Created: minutes(-60)}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// row is a running session of half an hour, with half an hour to go.
func row(id string, changes ...func(*Session)) Session {
	s := Session{ID: id, Runtime: "vm", Status: "running", VMName: "lab-" + id, StartedAt: new(minutes(-30)), ExpiresAt: new(minutes(30))}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func ended(s *Session) {
	s.StartedAt, s.ExpiresAt, s.PastEnd = new(minutes(-61)), new(minutes(-1)), true
}
func unnamed(s *Session)                      { s.VMName = "" }
func statusOf(word string) func(*Session)     { return func(s *Session) { s.Status = word } }
func started(at *time.Time) func(*Session)    { return func(s *Session) { s.StartedAt = at } }
func runtimeOf(runtime string) func(*Session) { return func(s *Session) { s.Runtime = runtime } }

// world is a snapshot of noon whose database is prod's.
func world(objects []Object, rows ...Session) Snapshot {
	return Snapshot{Objects: objects, ListedAt: noon, Rows: Rows{Sessions: rows, Now: noon, Fence: "prod"}}
}

// lines is a plan as one line an action, hold or notice: what tests compare.
func lines(plan Plan) []string {
	var all []string
	for _, action := range plan.Actions {
		line := fmt.Sprintf("%s %s:", action.Direction, action.Session)
		for _, object := range action.Objects {
			line += " " + object.String()
		}
		all = append(all, strings.TrimSuffix(line, ":"))
	}
	for _, hold := range plan.Holds {
		all = append(all, fmt.Sprintf("hold %s %s", hold.Direction, hold.Cause))
	}
	for _, notice := range plan.Notices {
		all = append(all, "notice "+notice.What)
	}
	return all
}

func TestMakePlan(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		snapshot Snapshot
		want     []string
	}{
		"nothing due": {world([]Object{machine("a")}, row("a")), nil},

		"expired, with all that it owns, machines first": {
			world([]Object{machine("a", of(Secret)), machine("a", of(NetworkPolicy)), machine("a"), machine("a", of(Service))}, row("a", ended)),
			[]string{"expired a: VirtualMachine/lab-a Secret/lab-a Service/lab-a NetworkPolicy/lab-a"},
		},
		"expired and its machine is gone already":    {world(nil, row("a", ended)), []string{"expired a"}},
		"expired while starting":                     {world(nil, row("a", ended, statusOf("starting"))), []string{"expired a"}},
		"an expired Pod session":                     {world([]Object{machine("a", of(Pod))}, row("a", ended, runtimeOf("pod"), unnamed)), []string{"expired a: Pod/lab-a"}},
		"expired, from before the labels":            {world([]Object{machine("a", unlabelled)}, row("a", ended)), []string{"expired a: VirtualMachine/lab-a"}},
		"expired, labelled with the session alone":   {world([]Object{machine("a", in(""))}, row("a", ended)), []string{"expired a: VirtualMachine/lab-a"}},
		"expired, its name taken by another session": {world([]Object{machine("b", func(o *Object) { o.Name = "lab-a" })}, row("a", ended), row("b")), []string{"expired a"}},
		"expired, but the machine is another's":      {world([]Object{machine("a", in("dev"))}, row("a", ended)), []string{"notice session a"}},
		"expired, and terminating already":           {world([]Object{machine("a", deleting(minutes(-1)))}, row("a", ended)), []string{"expired a"}},
		"an end that is no point in time":            {world([]Object{machine("a")}, row("a", ended, func(s *Session) { s.ExpiresAt = nil })), []string{"notice session a"}},
		"an end before the start":                    {world([]Object{machine("a")}, row("a", ended, started(new(minutes(-0))))), []string{"notice session a"}},
		"an unknown status protects":                 {world([]Object{machine("a")}, row("a", ended, statusOf("paused"))), []string{"notice session a"}},
		"no status protects":                         {world([]Object{machine("a")}, row("a", ended, statusOf(""))), []string{"notice session a"}},
		"two expired, the one that waited longest first": {
			world(nil, row("a", ended), row("b", ended, func(s *Session) { s.ExpiresAt = new(minutes(-9)) })),
			[]string{"expired b", "expired a"},
		},

		"expired, with a Secret that is its by name": {
			world([]Object{machine("a"), secretNamed("lab-a-cloudinit")}, row("a", ended)),
			[]string{"expired a: VirtualMachine/lab-a Secret/lab-a-cloudinit"},
		},
		"expired, its machine gone and its Secret left": {
			world([]Object{secretNamed("lab-a-cloudinit")}, row("a", ended)), []string{"expired a: Secret/lab-a-cloudinit"},
		},
		"a Secret that is a member's by name": {
			world([]Object{machine("a"), machine("a", func(o *Object) { o.Name = "lab-a-n1" }), secretNamed("lab-a-n1-cloudinit")}, row("a", ended)),
			[]string{"expired a: VirtualMachine/lab-a VirtualMachine/lab-a-n1 Secret/lab-a-n1-cloudinit"},
		},
		"a Secret of its name that carries another session": {
			world([]Object{secretNamed("lab-a-cloudinit", func(o *Object) { o.Session, o.Environment = "b", "prod" })}, row("a", ended), row("b", statusOf("starting"))),
			[]string{"expired a"},
		},
		"a Secret of its name that carries another environment": {
			world([]Object{secretNamed("lab-a-cloudinit", in("dev"))}, row("a", ended)), []string{"expired a"},
		},
		"a Secret of its name that would be a live session's too": {
			world([]Object{secretNamed("lab-a-cloudinit")}, row("a", ended), row("b", statusOf("starting"), func(s *Session) { s.VMName = "lab-a" })), []string{"expired a"},
		},
		"a Secret of nobody's name": {world([]Object{secretNamed("lab-b-cloudinit"), secretNamed("registry")}, row("a", ended)), []string{"expired a"}},
		"an unlabelled machine that two rows name": {
			world([]Object{machine("a", unlabelled)}, row("a", ended), row("b", func(s *Session) { s.VMName = "lab-a" })), []string{"expired a"},
		},

		"an orphan":                             {world([]Object{machine("a")}), []string{"orphan a: VirtualMachine/lab-a"}},
		"an orphan's Secret is one for itself":  {world([]Object{machine("a"), machine("a", of(Secret), created(minutes(-50)))}), []string{"orphan a: VirtualMachine/lab-a", "orphan a: Secret/lab-a"}},
		"a Secret of 32 days":                   {world([]Object{machine("a", of(Secret), created(noon.AddDate(0, 0, -32)))}), []string{"orphan a: Secret/lab-a"}},
		"too young for an orphan":               {world([]Object{machine("a", created(minutes(-4)))}), nil},
		"another environment's is none of ours": {world([]Object{machine("a", in("dev")), machine("a", in("dev"), of(Secret))}), nil},
		"no environment label, only reported":   {world([]Object{machine("a", in(""))}), []string{"notice VirtualMachine/lab-a"}},
		"no label at all, not even reported":    {world([]Object{machine("a", unlabelled)}), nil},
		"an instance of an orphan goes with it": {world([]Object{machine("a"), machine("a", of(VirtualMachineInstance), ownedBy("uid-a"))}), []string{"orphan a: VirtualMachine/lab-a"}},
		"an instance whose machine is gone":     {world([]Object{machine("a", of(VirtualMachineInstance), ownedBy("uid-gone"))}), []string{"orphan a: VirtualMachineInstance/lab-a"}},
		"an orphan that is terminating":         {world([]Object{machine("a", deleting(minutes(-1)))}), nil},
		"an orphan that is stuck terminating":   {world([]Object{machine("a", deleting(minutes(-120)))}), []string{"notice VirtualMachine/lab-a"}},
		"a session's machine that is stuck":     {world([]Object{machine("a", deleting(minutes(-120)))}, row("a", ended)), []string{"expired a", "notice VirtualMachine/lab-a"}},
		"another's that is stuck":               {world([]Object{machine("a", in("dev"), deleting(minutes(-120)))}), nil},
		"a session that is starting protects":   {world([]Object{machine("a", of(Secret))}, row("a", statusOf("starting"), unnamed)), nil},

		"a ghost":                                  {world(nil, row("a")), []string{"ghost a"}},
		"no ghost within the grace":                {world(nil, row("a", started(new(minutes(-9))))), nil},
		"no ghost while starting":                  {world(nil, row("a", statusOf("starting"))), nil},
		"no ghost without a start":                 {world(nil, row("a", started(nil))), []string{"notice session a"}},
		"no ghost without a name":                  {world(nil, row("a", unnamed)), []string{"notice session a"}},
		"no ghost for a Pod session":               {world(nil, row("a", runtimeOf("pod"), unnamed)), nil},
		"no ghost while its unlabelled machine is": {world([]Object{machine("a", unlabelled)}, row("a")), nil},
		"no ghost while terminating":               {world([]Object{machine("a", deleting(minutes(-1)))}, row("a")), nil},
		"no ghost while another's has its name":    {world([]Object{machine("a", in("dev"))}, row("a")), nil},
		"an expired ghost expires":                 {world(nil, row("a", ended)), []string{"expired a"}},

		"past its deadline, whatever its row says": {world([]Object{machine("a", deadline("2026-11-29T11:59:59Z"))}, row("a")), []string{"deadline a: VirtualMachine/lab-a"}},
		"before its deadline":                      {world([]Object{machine("a", deadline("2026-11-29T12:00:01Z"))}, row("a")), nil},
		"another's past its deadline":              {world([]Object{machine("a", in("dev"), deadline("2026-11-29T11:00:00Z"))}), nil},
		"an unreadable deadline is kept":           {world([]Object{machine("a", deadline("soon"))}, row("a")), []string{"notice VirtualMachine/lab-a"}},
		"both expired and past its deadline":       {world([]Object{machine("a", deadline("2026-11-29T11:00:00Z"))}, row("a", ended)), []string{"deadline a: VirtualMachine/lab-a", "expired a: VirtualMachine/lab-a"}},

		"machines not listed": {
			Snapshot{Objects: []Object{machine("a", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, MachinesErr: broken, Rows: world(nil, row("a", ended)).Rows},
			[]string{"hold deadline Aborted", "hold expired Aborted", "hold orphan Aborted", "hold ghost Aborted"},
		},
		"Secrets not listed": {
			Snapshot{Objects: []Object{machine("a"), machine("b", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, ObjectsErr: broken, Rows: world(nil, row("c", ended)).Rows},
			[]string{"deadline b: VirtualMachine/lab-b", "hold expired Aborted", "hold orphan Aborted", "hold ghost Aborted"},
		},
		"rows not read": {
			Snapshot{Objects: []Object{machine("a"), machine("b", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, RowsErr: broken},
			[]string{"deadline b: VirtualMachine/lab-b", "hold expired Aborted", "hold orphan Aborted", "hold ghost Aborted"},
		},
		"no database": {
			Snapshot{Objects: []Object{machine("a"), machine("b", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, WithoutRows: "has no sessions database"},
			[]string{"deadline b: VirtualMachine/lab-b", "notice environment prod"},
		},
		"another environment's database": {
			Snapshot{Objects: []Object{machine("a")}, ListedAt: noon, Rows: Rows{Now: noon, Fence: "dev", Sessions: []Session{row("b", ended)}}},
			[]string{"hold expired Fenced", "hold orphan Fenced", "hold ghost Fenced"},
		},
		"a database without a fence": {
			Snapshot{Objects: []Object{machine("a")}, ListedAt: noon, Rows: Rows{Now: noon}},
			[]string{"hold expired Fenced", "hold orphan Fenced", "hold ghost Fenced"},
		},
		"a standby": {
			Snapshot{Objects: []Object{machine("a"), machine("b", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, Rows: Rows{Now: noon, Fence: "prod", ReadOnly: true, Sessions: []Session{row("c", ended)}}},
			[]string{"deadline b: VirtualMachine/lab-b", "hold expired Aborted", "hold orphan Aborted", "hold ghost Aborted"},
		},
		"clocks apart": {
			Snapshot{Objects: []Object{machine("a", deadline("2026-11-29T11:00:00Z"))}, ListedAt: noon, Rows: Rows{Now: minutes(4), Fence: "prod"}},
			[]string{"hold deadline Braked", "hold expired Braked", "hold orphan Braked", "hold ghost Braked"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(MakePlan(c.snapshot, testSettings()))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// crowd is n sessions, lost of which have their machine and no row.
func crowd(n, lost int) Snapshot {
	var objects []Object
	var rows []Session
	for i := range n {
		id := fmt.Sprintf("%02d", i)
		objects = append(objects, machine(id))
		if i >= lost {
			rows = append(rows, row(id))
		}
	}
	return world(objects, rows...)
}

func TestTheOrphanBrakeHoldsByNumberAndByShare(t *testing.T) {
	for _, c := range []struct {
		sessions, lost int
		held           bool
	}{
		{1, 1, false}, {2, 2, false}, {3, 3, true}, {6, 3, false}, {5, 3, true}, {20, 4, false}, {20, 5, true},
	} {
		plan := MakePlan(crowd(c.sessions, c.lost), testSettings())
		if held := len(plan.Holds) == 1 && plan.Holds[0].Cause == Braked; held != c.held {
			t.Errorf("%d of %d lost: holds = %v, want held = %t", c.lost, c.sessions, plan.Holds, c.held)
		}
		want := c.lost
		if c.held {
			want = 0
		}
		if got := len(plan.Of(Orphan)); got != want {
			t.Errorf("%d of %d lost: %d orphans planned, want %d", c.lost, c.sessions, got, want)
		}
	}
}

func TestTheBrakeCountsMachinesNotWhatTheyLeftBehind(t *testing.T) {
	var secrets []Object
	for i := range 10 {
		secrets = append(secrets, machine(fmt.Sprint(i), of(Secret)))
	}
	if got := len(MakePlan(world(secrets), testSettings()).Of(Orphan)); got != 10 {
		t.Errorf("%d Secrets planned, want all 10", got)
	}
}

func TestTheGhostBrakeHoldsAndCanBeReleased(t *testing.T) {
	var rows []Session
	for i := range 5 {
		rows = append(rows, row(fmt.Sprint(i)))
	}
	settings := testSettings()
	if plan := MakePlan(world(nil, rows...), settings); len(plan.Actions) != 0 || len(plan.Holds) != 1 || plan.Holds[0].Direction != Ghost {
		t.Errorf("plan = %v, want the ghosts held", lines(plan))
	}
	settings.Released = []BrakeName{OrphanBrake}
	if plan := MakePlan(world(nil, rows...), settings); len(plan.Holds) != 1 {
		t.Error("releasing the orphans' brake let the ghosts through")
	}
	settings.Released = []BrakeName{GhostBrake}
	if plan := MakePlan(world(nil, rows...), settings); len(plan.Of(Ghost)) != 5 || len(plan.Holds) != 0 {
		t.Errorf("plan = %v, want the 5 ghosts", lines(plan))
	}
}

func TestExitStatusTellsTheWorst(t *testing.T) {
	failed, done := Item{Result: Failed}, Item{Result: Done}
	for _, c := range []struct {
		report Report
		want   int
	}{
		{Report{}, 0},
		{Report{Items: []Item{done, {Result: Kept}}, Notices: []Notice{{}}}, 0},
		{Report{Items: []Item{done, failed}}, 3},
		{Report{Items: []Item{failed}, Holds: []Hold{{Cause: Braked}}}, 4},
		{Report{Holds: []Hold{{Cause: Fenced}}}, 4},
		{Report{Holds: []Hold{{Cause: Braked}, {Cause: Aborted}}}, 1},
	} {
		if got := c.report.ExitStatus(); got != c.want {
			t.Errorf("%+v: exit status %d, want %d", c.report, got, c.want)
		}
	}
}
