package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// memory is a Book, a Census and a Witness without an API server: for what depends on time or on faults. That real replicas
// are exact on a real API server is shown in test/e2e.
type memory struct {
	page      Page
	version   int
	occupants []Occupant
	seen      map[types.UID]bool
	// conflicts is how many writes more are answered with ErrConflict.
	conflicts      int
	readErr        error
	occupantsErr   error
	reads, writes  int
	beforeOccupant func()
}

func (m *memory) Read(context.Context) (Page, error) {
	m.reads++
	return m.page, m.readErr
}

func (m *memory) Write(_ context.Context, page Page) error {
	m.writes++
	if m.conflicts > 0 {
		m.conflicts--
		return ErrConflict
	}
	if page.Version != m.page.Version {
		return ErrConflict
	}
	m.version++
	page.Version = fmt.Sprint(m.version)
	m.page = page
	return nil
}

func (m *memory) Occupants(context.Context, map[types.UID]Need) ([]Occupant, error) {
	if m.beforeOccupant != nil {
		m.beforeOccupant()
	}
	return m.occupants, m.occupantsErr
}

func (m *memory) Seen(uid types.UID) bool { return m.seen[uid] }

func (m *memory) exist(names ...string) *memory {
	for _, name := range names {
		m.occupants = append(m.occupants, Occupant{Name: name, UID: types.UID("uid-" + name)})
	}
	return m
}

func newLedger(m *memory, limit int) (*Ledger, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	return &Ledger{Book: m, Census: m, Witness: m, Limits: Limits{VMs: limit}, Reservation: time.Minute, Clock: clock}, clock
}

func decide(t *testing.T, l *Ledger, claim Claim) Verdict {
	t.Helper()
	verdict, err := l.Decide(t.Context(), claim)
	if err != nil {
		t.Fatalf("Decide(%+v): %v", claim, err)
	}
	return verdict
}

func TestAGrantedClaimHoldsItsPlaceUntilItLapses(t *testing.T) {
	m := (&memory{}).exist("a")
	l, clock := newLedger(m, 2)
	if !decide(t, l, Claim{Name: "b", UID: "1"}).Granted {
		t.Fatal("the last place was not granted")
	}
	clock.SetTime(clock.Now().Add(20 * time.Second))
	refused := decide(t, l, Claim{Name: "c", UID: "2"})
	want := []Shortage{{Scope: Namespace, Limit: 2, Used: 1, Reserved: 1, Asked: 1, FirstLapse: 40 * time.Second}}
	if diff := cmp.Diff(want, refused.Shortages); diff != "" {
		t.Errorf("shortages (-want +got):\n%s", diff)
	}
	clock.SetTime(clock.Now().Add(41 * time.Second))
	if !decide(t, l, Claim{Name: "c", UID: "2"}).Granted {
		t.Error("the lapsed reservation still holds its place")
	}
}

func TestAnObjectThatShowsHoldsOnePlaceNotTwo(t *testing.T) {
	m := &memory{}
	l, _ := newLedger(m, 2)
	decide(t, l, Claim{Name: "a", UID: "uid-a"})
	m.exist("a")
	if verdict := decide(t, l, Claim{Name: "b", UID: "2"}); !verdict.Granted || verdict.Tally.Total.Used != 1 || verdict.Tally.Total.Reserved != 0 {
		t.Errorf("verdict = %+v, want a grant with 1 used and 0 reserved", verdict)
	}
	if len(m.page.Reservations) != 1 || m.page.Reservations[0].Name != "b" {
		t.Errorf("reservations = %+v, want b's alone", m.page.Reservations)
	}
}

func TestAnInstanceAndItsMachineHoldOnePlace(t *testing.T) {
	m := (&memory{}).exist("a", "a")
	l, _ := newLedger(m, 2)
	if verdict := decide(t, l, Claim{Name: "b", UID: "2"}); !verdict.Granted || verdict.Tally.Total.Used != 1 {
		t.Errorf("verdict = %+v, want a grant with 1 used", verdict)
	}
}

// A virtual machine went and left its instance; under its name another tenant made one. If that one goes too, the first tenant's
// instance is what is left.
func TestAnInstanceOfAnotherTenantThanItsMachinesHoldsThatTenantsPlaceToo(t *testing.T) {
	old, other := Tenant{Environment: "dev", Session: "t"}, Tenant{Environment: "prod", Session: "s"}
	count := newCount(Limits{VMs: 8, Environments: map[string]int{"dev": 1}, Session: new(1)},
		[]Occupant{{Name: "vm0", UID: "machine", Tenant: other}, {Name: "vm0", UID: "instance", Tenant: old}}, nil, time.Time{}, time.Minute)
	if count.total.Used != 1 {
		t.Errorf("one name holds %d places", count.total.Used)
	}
	var scopes []Scope
	for _, shortage := range count.shortages(Claim{Name: "vm1", UID: "next", Tenant: old}) {
		scopes = append(scopes, shortage.Scope)
	}
	if difference := cmp.Diff([]Scope{Environment, Session}, scopes); difference != "" {
		t.Errorf("what the first tenant is short of (-want +got):\n%s", difference)
	}
}

func TestAMachineThatWasSeenAndIsGoneFreesItsPlaceAtOnce(t *testing.T) {
	m := &memory{seen: map[types.UID]bool{"uid-a": true}}
	l, _ := newLedger(m, 1)
	decide(t, l, Claim{Name: "a", UID: "uid-a"})
	if !decide(t, l, Claim{Name: "b", UID: "2"}).Granted {
		t.Error("a machine that came to be and is gone still holds a reservation")
	}
}

// The list is of a moment before the watch event: an object that is only in the second must not fall between them. Real
// replicas once admitted a ninth virtual machine this way.
func TestAMachineSeenAfterTheListBeganStillHoldsItsReservation(t *testing.T) {
	m := &memory{seen: map[types.UID]bool{}}
	l, _ := newLedger(m, 1)
	decide(t, l, Claim{Name: "a", UID: "uid-a"})
	m.beforeOccupant = func() { m.seen["uid-a"] = true }
	if decide(t, l, Claim{Name: "b", UID: "2"}).Granted {
		t.Error("granted while a machine that the list is too old to show exists")
	}
}

func TestCreatesOfANameThatExistsTakeNoFurtherPlace(t *testing.T) {
	m := (&memory{}).exist("a")
	l, _ := newLedger(m, 2)
	for i := range 10 {
		if !decide(t, l, Claim{Name: "a", UID: types.UID(fmt.Sprint(i))}).Granted {
			t.Fatalf("create %d of the name that exists was refused a place; it should meet the 409", i)
		}
	}
	if !decide(t, l, Claim{Name: "b", UID: "new"}).Granted {
		t.Error("ten creates that end in 409 hold a place")
	}
}

func TestAContestedNameIsHeldUntilItLapses(t *testing.T) {
	m := &memory{}
	l, clock := newLedger(m, 1)
	decide(t, l, Claim{Name: "a", UID: "1"})
	decide(t, l, Claim{Name: "a", UID: "2"})
	// The second came to be and is gone; the first may still be under way at the API server.
	m.seen = map[types.UID]bool{"2": true}
	if decide(t, l, Claim{Name: "b", UID: "3"}).Granted {
		t.Error("a place was granted while a create of the contested name may still come through")
	}
	clock.SetTime(clock.Now().Add(61 * time.Second))
	if !decide(t, l, Claim{Name: "b", UID: "3"}).Granted {
		t.Error("the contested reservation never lapsed")
	}
}

func TestAMachineMadeAnewUnderItsNameFreesItsPlaceWhenBothWereSeen(t *testing.T) {
	m := &memory{seen: map[types.UID]bool{}}
	l, _ := newLedger(m, 1)
	// Deleted and made anew before the watch told of the first.
	decide(t, l, Claim{Name: "a", UID: "1"})
	decide(t, l, Claim{Name: "a", UID: "2"})
	m.seen["1"], m.seen["2"] = true, true
	if !decide(t, l, Claim{Name: "b", UID: "3"}).Granted {
		t.Error("the place is held although both were seen and are gone")
	}
}

func TestAHammeredNameFillsNoPageAndIsHeldUntilItLapses(t *testing.T) {
	m := &memory{seen: map[types.UID]bool{}}
	l, clock := newLedger(m, 1)
	for i := range 100 {
		uid := types.UID(fmt.Sprint(i))
		decide(t, l, Claim{Name: "a", UID: uid})
		m.seen[uid] = i < maxAwaited
	}
	if r := m.page.Reservations; len(r) != 1 || len(r[0].Awaited) > maxAwaited {
		t.Errorf("reservations = %+v, want one with at most %d objects awaited", r, maxAwaited)
	}
	if decide(t, l, Claim{Name: "b", UID: "b"}).Granted {
		t.Error("a place was granted while creates that were not told apart may still come through")
	}
	clock.SetTime(clock.Now().Add(61 * time.Second))
	if !decide(t, l, Claim{Name: "b", UID: "b"}).Granted {
		t.Error("the reservation never lapsed")
	}
}

func TestADryRunCountsAndWritesNothing(t *testing.T) {
	m := (&memory{}).exist("a")
	l, _ := newLedger(m, 2)
	if !decide(t, l, Claim{Name: "b", UID: "1", DryRun: true}).Granted || m.writes != 0 {
		t.Errorf("a dry run with a place free: %d writes, want a grant and 0", m.writes)
	}
	m.exist("b")
	if decide(t, l, Claim{Name: "c", UID: "2", DryRun: true}).Granted {
		t.Error("a dry run beyond the cap was granted")
	}
}

func TestAWriteConflictStartsOverWithAFreshList(t *testing.T) {
	m := &memory{conflicts: 1}
	l, _ := newLedger(m, 1)
	reads := 0
	m.beforeOccupant = func() {
		if reads++; reads == 2 {
			m.exist("other")
		}
	}
	if decide(t, l, Claim{Name: "a", UID: "1"}).Granted {
		t.Error("granted on what was seen before the conflict")
	}
	if reads != 2 {
		t.Errorf("%d lists, want 2", reads)
	}
}

func TestWithoutACountThereIsAnErrorAndNoReservation(t *testing.T) {
	broken := errors.New("broken")
	for name, m := range map[string]*memory{"book": {readErr: broken}, "census": {occupantsErr: broken}} {
		l, _ := newLedger(m, 8)
		if _, err := l.Decide(t.Context(), Claim{Name: "a", UID: "1"}); !errors.Is(err, broken) {
			t.Errorf("%s: error = %v, want %v", name, err, broken)
		}
		if m.writes != 0 {
			t.Errorf("%s: %d writes, want 0", name, m.writes)
		}
	}
}

func TestAReservationOfABrokenClockLapsesToo(t *testing.T) {
	m := &memory{}
	l, clock := newLedger(m, 2)
	m.page.Reservations = []Reservation{{Name: "z", Awaited: []types.UID{"9"}, At: clock.Now().Add(24 * time.Hour), Tenants: []Tenant{{}}}}
	decide(t, l, Claim{Name: "a", UID: "1"})
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	if !decide(t, l, Claim{Name: "b", UID: "2"}).Granted || !decide(t, l, Claim{Name: "c", UID: "3"}).Granted {
		t.Error("a reservation dated into the next day still holds a place after two minutes")
	}
}

// Without a free place nothing else is written, and a reservation that is dated anew only in memory would hold for ever.
func TestAReservationOfABrokenClockLapsesInAFullNamespaceToo(t *testing.T) {
	m := &memory{}
	l, clock := newLedger(m, 1)
	m.page.Reservations = []Reservation{{Name: "z", Awaited: []types.UID{"9"}, At: clock.Now().Add(24 * time.Hour), Tenants: []Tenant{{}}}}
	if decide(t, l, Claim{Name: "a", UID: "1"}).Granted {
		t.Fatal("the reservation of the broken clock holds no place")
	}
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	if !decide(t, l, Claim{Name: "a", UID: "1"}).Granted {
		t.Error("a reservation dated into the next day still holds the only place after two minutes")
	}
}

func TestARequesterWhoGaveUpTakesNoPlace(t *testing.T) {
	m := &memory{}
	l, _ := newLedger(m, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Decide(ctx, Claim{Name: "a", UID: "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	if !decide(t, l, Claim{Name: "b", UID: "2"}).Granted {
		t.Error("the place went to a requester who had given up")
	}
}

func waiting(l *Ledger) int {
	l.queue.mutex.Lock()
	defer l.queue.mutex.Unlock()
	return len(l.queue.waiting)
}

func TestClaimsThatWaitAreDecidedTogether(t *testing.T) {
	m := &memory{}
	l, _ := newLedger(m, 8)
	const claims = 40
	entered, release := make(chan struct{}), make(chan struct{})
	first := true
	m.beforeOccupant = func() {
		if first {
			first = false
			close(entered)
			<-release
		}
	}
	verdicts := make(chan Verdict, claims)
	ask := func(i int) {
		verdict, err := l.Decide(t.Context(), Claim{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))})
		if err != nil {
			t.Error(err)
		}
		verdicts <- verdict
	}
	go ask(0)
	<-entered
	for i := 1; i < claims; i++ {
		go ask(i)
	}
	for waiting(l) < claims-1 {
		runtime.Gosched()
	}
	close(release)
	granted := 0
	for range claims {
		if (<-verdicts).Granted {
			granted++
		}
	}
	if granted != 8 || m.reads != 2 {
		t.Errorf("%d granted with %d reads, want 8 with 2: one for the first, one for all that waited", granted, m.reads)
	}
}
