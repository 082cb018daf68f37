// Package ledger hands out the places of a namespace's virtual machines, so that no interleaving of replicas, retries, slow
// lists and failed creates lets one more in than there are places.
//
// # The argument
//
// A place is known by the name of its virtual machine: in one namespace a name stands for at most one object at a time, a
// virtual machine and its instance share it, and a create of a name that is taken ends in 409 AlreadyExists. Taken are the
// names that a consistent list shows, and the names of reservations in one page, kept at the API server, whose
// resourceVersion serialises all replicas. A decision reads the page, then lists, then writes the page back under the
// version that it read.
//
//   - If that write succeeds, nobody reserved anything between the read and the write, so every earlier grant was in the
//     page that was read, or had left it.
//   - A reservation leaves the page only when its very object (by UID) is in the list, when a watch had seen it before the list
//     began, or when it lapsed. In the first two cases the object had been created, so this list and every later one shows it
//     unless it is gone; in the third the API server has given its create up, provided that the reservation time exceeds what
//     the API server may take for one request. (A watch that is asked only after the list is one that may know of an object
//     which the list is too old to show; then nothing would stand for it.)
//   - Where several creates ask for one name, the reservation awaits the object of each, and stays until all were seen or it
//     lapsed: the one that is listed now may be gone when the next create arrives. It holds no more than the one place of its
//     name.
//
// So the names listed and reserved cover every virtual machine that exists or may still come to be, and they never exceed
// the limit.
//
// The same holds for every other limit: each name also carries whose it is and what it needs, at most. Where different tenants
// ask for one name, or for different sizes of it, the name counts for each of the tenants and at the greatest size, since any of
// the creates may be the one that comes through: the object that holds the name now may be gone when the next create arrives.
//
// # What the reservation time trades
//
// A create that was admitted and then failed (409, a quota, another webhook) is never reported to an admission webhook. Its
// place comes back when the reservation lapses. A longer reservation keeps such a place from others for longer; one that is
// shorter than the API server's request time-out lets a slow create come through after its place was given to another.
//
// # What is not proved
//
// A page that is deleted or edited by hand forgets grants whose creates are under way. Replicas with different limits, during a
// rollout, each keep their own: what exists never exceeds the greatest of them. An instance that virt-controller makes for
// a virtual machine that is gone would have no place; the finalizer that it keeps on the virtual machine rules that out.
// Growth of a virtual machine by an update is counted by every later decision, and not refused.
//
// # Clocks
//
// Reservations are dated by the replica that writes them and judged by the one that reads them, each by the clock that it is
// given: the API server's (internal/apiclock). The reservation time must exceed the API server's request time-out by more than
// these differ. A reservation dated in the future by more than the reservation time is the work of a broken clock and is dated
// anew, so that it lapses too.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// ErrConflict is what a Book answers when the page was written by somebody else after it was read.
var ErrConflict = errors.New("the page was written meanwhile")

// Book keeps the one page of reservations that all replicas share.
type Book interface {
	// Read returns the page as the API server holds it now, not as a cache remembers it.
	Read(ctx context.Context) (Page, error)
	// Write replaces the page under the version that was read, or answers ErrConflict.
	Write(ctx context.Context, page Page) error
}

// Census tells which virtual machines exist, and which instances run with none.
type Census interface {
	// Occupants is a consistent list: it shows all that was created before it began. A name may repeat, an instance after its
	// virtual machine. Known are needs by UID that the census need not find out: of virtual machines as they were created.
	Occupants(ctx context.Context, known map[types.UID]Need) ([]Occupant, error)
}

// Witness remembers which objects came to be. What it has not seen proves nothing, so it may lag as it likes; what it has
// seen frees the reservation of a virtual machine that was created and is gone again before any list could show it.
type Witness interface {
	Seen(uid types.UID) bool
}

// Observer is told what the ledger does. It is called while others wait for their decision.
type Observer interface {
	// Decided is called after a decision on one or more claims, with the number of attempts that it took.
	Decided(attempts int, tally Tally)
}

// Ledger decides claims for one namespace. It is safe for concurrent use, and any number of processes may share a Book.
type Ledger struct {
	Book    Book
	Census  Census
	Witness Witness
	Limits  Limits
	// Reservation is how long a granted claim holds its place before its object shows in a list.
	Reservation time.Duration
	Clock       clock.PassiveClock
	// Observer, if set, is told of every decision.
	Observer Observer

	queue queue
}

// Decide answers a claim, and takes the place if it grants it. An error means that the places could not be counted, or that
// it is not known whether the reservation was written; then the claim is not granted, and what may have been reserved lapses.
//
// Claims that arrive while a decision is under way wait and are decided together, in the order of their arrival, by one
// read, one list and one write.
func (l *Ledger) Decide(ctx context.Context, claim Claim) (Verdict, error) {
	return l.queue.do(ctx, claim, l.decideAll)
}

// conflictPause is the mean pause before a decision starts over. It is about what another replica needs to finish its own.
const conflictPause = 10 * time.Millisecond

func (l *Ledger) decideAll(ctx context.Context, claims []Claim) ([]Verdict, error) {
	for attempts := 1; ; attempts++ {
		verdicts, tally, err := l.attempt(ctx, claims)
		if err == nil && l.Observer != nil {
			l.Observer.Decided(attempts, tally)
		}
		if !errors.Is(err, ErrConflict) {
			return verdicts, err
		}
		pause := time.NewTimer(wait.Jitter(conflictPause/2, 2))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, fmt.Errorf("reserving a place: other replicas kept writing: %w", ctx.Err())
		}
	}
}

// attempt decides the claims against one reading of the world.
func (l *Ledger) attempt(ctx context.Context, claims []Claim) ([]Verdict, Tally, error) {
	v, err := l.look(ctx)
	if err != nil {
		return nil, Tally{}, err
	}
	verdicts := make([]Verdict, len(claims))
	write := v.redated
	for i, claim := range claims {
		verdicts[i] = Verdict{Shortages: v.count.shortages(claim), Tally: v.count.tally()}
		if len(verdicts[i].Shortages) > 0 {
			continue
		}
		verdicts[i].Granted = true
		verdicts[i].Last = v.count.last(claim)
		if !claim.DryRun {
			v.count.reserve(claim.Name, claim.Tenant, claim.Need, l.Reservation)
			v.page.reserve(claim, v.now)
			write = true
		}
	}
	if write {
		if err := l.Book.Write(ctx, v.page); err != nil {
			return nil, Tally{}, fmt.Errorf("writing the reservations: %w", err)
		}
	}
	return verdicts, v.count.tally(), nil
}

// view is one reading of the world.
type view struct {
	page  Page
	now   time.Time
	count *count
	// redated: a reservation was dated anew, and lapses only if that is written.
	redated bool
}

// look reads the world. The order of its steps is what makes a decision exact: see the package comment.
func (l *Ledger) look(ctx context.Context) (view, error) {
	page, err := l.Book.Read(ctx)
	if err != nil {
		return view{}, fmt.Errorf("reading the reservations: %w", err)
	}
	known := page.needs()
	// Before the list begins, not after: see the package comment.
	page.dropSeen(l.Witness)
	occupants, err := l.Census.Occupants(ctx, known)
	if err != nil {
		return view{}, fmt.Errorf("listing the virtual machines: %w", err)
	}
	now := l.Clock.Now()
	redated := page.settle(occupants, now, l.Reservation)
	return view{page: page, now: now, redated: redated, count: newCount(l.Limits, occupants, page.Reservations, now, l.Reservation)}, nil
}

// Survey counts and takes nothing.
func (l *Ledger) Survey(ctx context.Context) (Tally, error) {
	v, err := l.look(ctx)
	if err != nil {
		return Tally{}, err
	}
	return v.count.tally(), nil
}
