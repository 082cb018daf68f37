package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The model's times. They are the assumption under which the ledger is exact: a reservation outlives every create that it is for,
// also where the clock of the replica that judges it runs ahead of that of the one that dated it.
const (
	modelReservation    = 75 * time.Second
	modelRequestTimeout = 60 * time.Second
	modelWebhookTimeout = 10 * time.Second
	// modelSkew is how far a replica's clock is off, either way: 60 s + 2 * 7 s < 75 s.
	modelSkew = 7 * time.Second
)

var errLost = errors.New("the answer was lost")

// model is an API server of which a test decides what happens when. Every call waits twice: until it takes effect, and until
// its answer arrives, if it does.
type model struct {
	mutex     sync.Mutex
	machines  map[string]Occupant
	instances map[string]Occupant
	page      Page
	version   int
	// born are the virtual machines that came to be, in order, for the witnesses.
	born    []types.UID
	calls   []*call
	creates []*create
}

// call is a request of a replica to the API server.
type call struct {
	effect   func() error
	executed bool
	result   error
	answer   chan error
}

// create is a request of a backend, which the API server holds while a replica decides.
type create struct {
	claim   Claim
	started time.Time
	granted bool
	ended   bool
	verdict Verdict
	err     error
	// took is how long the replica took to answer.
	took time.Duration
}

func newModel() *model {
	return &model{machines: map[string]Occupant{}, instances: map[string]Occupant{}}
}

// perform makes a call for a replica. A replica that was killed gets no answer and makes no further call, but what it had
// sent may still take effect.
func (m *model) perform(ctx context.Context, r *replica, effect func() error) error {
	select {
	case <-r.killed:
		return errLost
	default:
	}
	c := &call{effect: effect, answer: make(chan error, 1)}
	m.mutex.Lock()
	m.calls = append(m.calls, c)
	m.mutex.Unlock()
	select {
	case err := <-c.answer:
		return err
	case <-r.killed:
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute lets a call take effect; reply gives its answer, or loses it.
func (m *model) execute(c *call) {
	c.executed = true
	c.result = c.effect()
}

func (m *model) reply(c *call, lost bool) {
	m.calls = slices.DeleteFunc(m.calls, func(other *call) bool { return other == c })
	if lost {
		c.result = errLost
	}
	c.answer <- c.result
}

// commit stores the virtual machine of a create that was granted, unless its name is taken or its time is up. fail ends it.
func (m *model) commit(c *create, now time.Time) {
	c.ended = true
	if _, taken := m.machines[c.claim.Name]; taken || now.Sub(c.started) > modelRequestTimeout {
		return
	}
	m.machines[c.claim.Name] = Occupant{Name: c.claim.Name, UID: c.claim.UID, Tenant: c.claim.Tenant, Need: c.claim.Need}
	m.born = append(m.born, c.claim.UID)
}

// startInstance is what virt-controller does: never for a virtual machine that is gone.
func (m *model) startInstance(name string) {
	machine, found := m.machines[name]
	if _, running := m.instances[name]; !found || running {
		return
	}
	machine.UID += "-instance"
	m.instances[name] = machine
}

// holdings are what exists by name: whose it is, and the most that its objects need.
func (m *model) holdings() map[string]Occupant {
	all := maps.Clone(m.instances)
	for name, machine := range m.machines {
		machine.Need = machine.most(all[name].Need)
		all[name] = machine
	}
	return all
}

// overrun says which limit is passed by what exists.
func (m *model) overrun(limits Limits) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	environments, sessions := map[string]int{}, map[Tenant]int{}
	var need Need
	for _, o := range m.holdings() {
		environments[o.Environment]++
		sessions[o.Tenant]++
		need = need.plus(o.Need)
	}
	var faults []error
	if got := len(m.holdings()); got > limits.VMs {
		faults = append(faults, fmt.Errorf("%d exist, at most %d may", got, limits.VMs))
	}
	for name, limit := range limits.Environments {
		if environments[name] > limit {
			faults = append(faults, fmt.Errorf("environment %s has %d, at most %d may be", name, environments[name], limit))
		}
	}
	for tenant, got := range sessions {
		if tenant.Session != "" && got > *limits.Session {
			faults = append(faults, fmt.Errorf("session %v has %d, at most %d may be", tenant, got, *limits.Session))
		}
	}
	if need.MilliCPU > *limits.MilliCPU || need.Memory > *limits.Memory {
		faults = append(faults, fmt.Errorf("%+v is needed, at most %d and %d may be", need, *limits.MilliCPU, *limits.Memory))
	}
	for _, c := range m.creates {
		if c.took > DecisionTimeout {
			faults = append(faults, fmt.Errorf("a create waited %s for its answer", c.took))
		}
	}
	return errors.Join(faults...)
}

// replica is one process: a Book, a Census and a Witness of its own over the same model.
type replica struct {
	model  *model
	ledger *Ledger
	skew   time.Duration
	killed chan struct{}
	seen   map[types.UID]bool
	// cursor is how far its watch has come.
	cursor int
}

func (m *model) newReplica(limits Limits, skew time.Duration) *replica {
	r := &replica{model: m, skew: skew, killed: make(chan struct{}), seen: map[types.UID]bool{}, cursor: len(m.born)}
	// A watch begins with what exists.
	for _, machine := range m.machines {
		r.seen[machine.UID] = true
	}
	r.ledger = &Ledger{Book: r, Census: r, Witness: r, Limits: limits, Reservation: modelReservation, Clock: r}
	return r
}

func (r *replica) Now() time.Time                  { return time.Now().Add(r.skew) }
func (r *replica) Since(t time.Time) time.Duration { return r.Now().Sub(t) }

func (r *replica) Read(ctx context.Context) (Page, error) {
	var page Page
	err := r.model.perform(ctx, r, func() error {
		page = Page{Version: r.model.page.Version, Reservations: slices.Clone(r.model.page.Reservations)}
		return nil
	})
	return page, err
}

func (r *replica) Write(ctx context.Context, page Page) error {
	page.Reservations = slices.Clone(page.Reservations)
	return r.model.perform(ctx, r, func() error {
		if page.Version != r.model.page.Version {
			return ErrConflict
		}
		r.model.version++
		page.Version = fmt.Sprint(r.model.version)
		r.model.page = page
		return nil
	})
}

// Occupants lists as MetadataCensus does: the virtual machines, and then the instances.
func (r *replica) Occupants(ctx context.Context, _ map[types.UID]Need) ([]Occupant, error) {
	var machines, instances []Occupant
	if err := r.model.perform(ctx, r, func() error {
		machines = slices.Collect(maps.Values(r.model.machines))
		return nil
	}); err != nil {
		return nil, err
	}
	err := r.model.perform(ctx, r, func() error {
		instances = slices.Collect(maps.Values(r.model.instances))
		return nil
	})
	return append(machines, instances...), err
}

func (r *replica) Seen(uid types.UID) bool {
	r.model.mutex.Lock()
	defer r.model.mutex.Unlock()
	return r.seen[uid]
}

// watch delivers the events up to now.
func (r *replica) watch() {
	for ; r.cursor < len(r.model.born); r.cursor++ {
		r.seen[r.model.born[r.cursor]] = true
	}
}

// ask sends a create's review to the replica. It is denied where no answer comes in time.
func (r *replica) ask(c *create) {
	ctx, cancel := context.WithTimeout(context.Background(), modelWebhookTimeout)
	defer cancel()
	verdict, err := r.ledger.Decide(ctx, c.claim)
	r.model.mutex.Lock()
	defer r.model.mutex.Unlock()
	c.verdict, c.err = verdict, err
	c.took = time.Since(c.started)
	select {
	case <-r.killed:
		c.ended = true
	default:
		c.granted = err == nil && verdict.Granted
		c.ended = !c.granted
	}
}
