package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// history is one course of events, drawn before it is played: what each move does depends on what is possible when its turn
// comes.
type history struct {
	limits Limits
	skews  []time.Duration
	moves  []move
}

type move struct {
	kind   kind
	which  int
	name   string
	tenant Tenant
	need   Need
}

type kind int

const (
	arrive kind = iota
	execute
	reply
	lose
	commit
	fail
	watch
	start
	vanish
	leaveInstance
	stop
	restart
	shortly
	later
	muchLater
	kinds
)

// drawHistory draws the length of a history, which is what shrinks, and seeds for all else: rapid prefers small numbers, and moves
// that mostly are the same few lead nowhere. Each history has its own taste: which moves are frequent, how many names are in play
// and which limits are tight, so that the rare courses of events have histories in which they are common.
func drawHistory(t *rapid.T) history {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "second seed")))
	tight := func(most int) int {
		if random.IntN(2) == 0 {
			return 100
		}
		return 1 + random.IntN(most)
	}
	h := history{limits: Limits{
		VMs: 1 + random.IntN(4), Environments: map[string]int{"prod": tight(3)}, Session: new(tight(3)),
		MilliCPU: new(int64(2 * tight(3))), Memory: new(int64(2 * tight(3))),
	}}
	for range 2 + random.IntN(2) {
		h.skews = append(h.skews, time.Duration(random.IntN(2*int(modelSkew)))-modelSkew)
	}
	var bag []kind
	for k := range kinds {
		weight := random.IntN(10)
		switch k {
		case execute, reply:
			weight = 40
		case commit, watch:
			weight += 10
		case lose, restart, later, muchLater:
			weight = random.IntN(3)
		}
		for range weight {
			bag = append(bag, k)
		}
	}
	names := 2 + random.IntN(5)
	for range rapid.IntRange(500, 800).Draw(t, "moves") {
		h.moves = append(h.moves, move{
			kind: bag[random.IntN(len(bag))], which: random.IntN(1000), name: fmt.Sprint("vm", random.IntN(names)),
			tenant: Tenant{Environment: []string{"prod", "dev"}[random.IntN(2)], Session: []string{"s", "t", ""}[random.IntN(3)]},
			need:   Need{MilliCPU: int64(random.IntN(4)), Memory: int64(random.IntN(4))},
		})
	}
	return h
}

// world plays a history.
type world struct {
	history
	model    *model
	replicas []*replica
	uids     int
}

func newWorld(h history) *world {
	w := &world{history: h, model: newModel()}
	for _, skew := range h.skews {
		w.replicas = append(w.replicas, w.model.newReplica(h.limits, skew))
	}
	return w
}

func with[T any](from []T, which int, do func(T)) {
	if len(from) > 0 {
		do(from[which%len(from)])
	}
}

func filter[T any](from []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(from), func(each T) bool { return !is(each) })
}

// play makes one move. All replicas wait while it does.
func (w *world) play(m move) {
	w.model.mutex.Lock()
	defer w.model.mutex.Unlock()
	waiting := filter(w.model.calls, func(c *call) bool { return !c.executed })
	executed := filter(w.model.calls, func(c *call) bool { return c.executed })
	granted := filter(w.model.creates, func(c *create) bool { return c.granted && !c.ended })
	r := w.replicas[m.which%len(w.replicas)]
	switch m.kind {
	case arrive:
		w.create(r, Claim{Name: m.name, Tenant: m.tenant, Need: m.need})
	case execute:
		with(waiting, m.which, w.model.execute)
	case reply:
		with(executed, m.which, func(c *call) { w.model.reply(c, false) })
	case lose:
		with(executed, m.which, func(c *call) { w.model.reply(c, true) })
	case commit:
		with(granted, m.which, func(c *create) { w.model.commit(c, time.Now()) })
	case fail:
		with(granted, m.which, func(c *create) { c.ended = true })
	case watch:
		r.watch()
	case start:
		w.model.startInstance(m.name)
	case vanish:
		delete(w.model.machines, m.name)
		delete(w.model.instances, m.name)
	case leaveInstance:
		delete(w.model.machines, m.name)
	case stop:
		delete(w.model.instances, m.name)
	case restart:
		w.restart(m.which % len(w.replicas))
	}
}

// locked looks at the model, or changes it, while no replica does.
func (w *world) locked(do func()) {
	w.model.mutex.Lock()
	defer w.model.mutex.Unlock()
	do()
}

func (w *world) create(r *replica, claim Claim) *create {
	w.uids++
	claim.UID = types.UID(fmt.Sprint("uid", w.uids))
	c := &create{claim: claim, started: time.Now()}
	w.model.creates = append(w.model.creates, c)
	go r.ask(c)
	return c
}

func (w *world) restart(i int) {
	close(w.replicas[i].killed)
	w.replicas[i] = w.model.newReplica(w.limits, w.skews[i])
}

// pass lets time go by: the bubble's clock is not that of the machine.
func pass(d time.Duration) { <-time.After(d) }

// after is how much time goes by after a move: most moves take an instant.
func (m move) after() time.Duration {
	switch m.kind {
	case shortly:
		return 20 * time.Millisecond
	case later:
		return 3 * time.Second
	case muchLater:
		return 25 * time.Second
	}
	return 0
}

// run plays the history and says where a limit was passed.
func (w *world) run() error {
	for i, m := range w.moves {
		w.play(m)
		synctest.Wait()
		if err := w.model.overrun(w.limits); err != nil {
			return fmt.Errorf("after move %d: %w", i, err)
		}
		pass(m.after())
		synctest.Wait()
	}
	return nil
}

// settle answers everything that is under way, and waits until nothing is reserved any more.
func (w *world) settle() {
	w.answerAll()
	w.locked(func() {
		for _, c := range w.model.creates {
			c.ended = true
		}
	})
	pass(2*modelReservation + 2*modelSkew)
	w.answerAll()
}

func (w *world) answerAll() {
	for {
		synctest.Wait()
		w.model.mutex.Lock()
		calls := slices.Clone(w.model.calls)
		for _, c := range calls {
			if !c.executed {
				w.model.execute(c)
			}
			w.model.reply(c, false)
		}
		w.model.mutex.Unlock()
		if len(calls) > 0 {
			continue
		}
		// A decision that met a conflict pauses before it starts over.
		pass(2 * conflictPause)
		synctest.Wait()
		left := 0
		w.locked(func() { left = len(w.model.calls) })
		if left == 0 {
			return
		}
	}
}

// free asks for places one by one, from replica after replica, until one is refused, and tells how many there were.
func (w *world) free() (int, error) {
	for granted := 0; ; granted++ {
		w.model.mutex.Lock()
		c := w.create(w.replicas[granted%len(w.replicas)], Claim{Name: fmt.Sprint("last", granted)})
		w.model.mutex.Unlock()
		w.answerAll()
		var refused bool
		var err error
		w.locked(func() { refused, err = !c.verdict.Granted, c.err })
		if err != nil {
			return 0, err
		}
		if refused {
			return granted, nil
		}
	}
}

// end lets every goroutine of the bubble come to its end.
func (w *world) end() {
	for _, r := range w.replicas {
		close(r.killed)
	}
	pass(2 * modelWebhookTimeout)
}

// play runs a history in a bubble of its own, whose clock is the test's to move.
func play(t *testing.T, h history, then func(*world) error) (err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(h)
		defer w.end()
		err = w.run()
		if err == nil {
			err = then(w)
		}
	})
	return err
}

func TestNoHistoryPassesALimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := play(t, drawHistory(rt), func(*world) error { return nil }); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestAfterEveryHistoryAllPlacesThatAreFreeAreGranted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		err := play(t, drawHistory(rt), func(w *world) error {
			w.settle()
			want := w.limits.VMs
			w.locked(func() { want -= len(w.model.holdings()) })
			got, err := w.free()
			if err == nil && got != want {
				err = fmt.Errorf("%d of %d free places were granted", got, want)
			}
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// The assumption on which all rests: with a reservation that ends before a create must, there are histories that pass a limit.
func TestAReservationShorterThanACreateMayTakeIsNotExact(t *testing.T) {
	limits := Limits{VMs: 1, Session: new(1), MilliCPU: new(int64(1)), Memory: new(int64(1))}
	var err error
	synctest.Test(t, func(*testing.T) {
		w := newWorld(history{limits: limits, skews: []time.Duration{0, 0}})
		defer w.end()
		for _, r := range w.replicas {
			r.ledger.Reservation = modelRequestTimeout / 2
		}
		w.model.mutex.Lock()
		slow := w.create(w.replicas[0], Claim{Name: "slow"})
		w.model.mutex.Unlock()
		w.answerAll()
		pass(modelRequestTimeout/2 + time.Second)
		w.model.mutex.Lock()
		quick := w.create(w.replicas[1], Claim{Name: "quick"})
		w.model.mutex.Unlock()
		w.answerAll()
		if !slow.granted || !quick.granted {
			err = errors.New("the place of the slow create was not given to another")
			return
		}
		w.model.commit(quick, time.Now())
		w.model.commit(slow, time.Now())
		if w.model.overrun(limits) == nil {
			err = errors.New("the limit holds, so the model's assumption on the reservation time is none")
		}
	})
	if err != nil {
		t.Error(err)
	}
}
