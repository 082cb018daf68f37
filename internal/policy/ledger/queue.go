package ledger

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// DecisionTimeout bounds the wait for one decision, the wait for those before it included. It stays below the webhook's own
// timeoutSeconds, so that the requester reads our answer and not the API server's time-out.
const DecisionTimeout = 8 * time.Second

// queue decides claims together. Whoever finds no decision under way decides for all that wait; the others wait for their
// answer or for their turn, whichever comes first.
type queue struct {
	mutex   sync.Mutex
	waiting []*ticket
	// turn holds one token while a decision is under way.
	turn chan struct{}
}

type ticket struct {
	ctx    context.Context
	claim  Claim
	answer chan answer
}

type answer struct {
	verdict Verdict
	err     error
}

func (q *queue) do(ctx context.Context, claim Claim, decide func(context.Context, []Claim) ([]Verdict, error)) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, DecisionTimeout)
	defer cancel()
	t := &ticket{ctx: ctx, claim: claim, answer: make(chan answer, 1)}
	turn := q.join(t)
	select {
	case a := <-t.answer:
		return a.verdict, a.err
	case <-ctx.Done():
		return Verdict{}, fmt.Errorf("waiting for the decision on a place: %w", ctx.Err())
	case turn <- struct{}{}:
	}
	// The decision may take longer than this requester can wait, since it is for others too who came later.
	go func() {
		defer func() { <-turn }()
		decideBatch(ctx, q.take(), decide)
	}()
	// This ticket is in the batch, or whoever had the turn before took it into theirs.
	select {
	case a := <-t.answer:
		return a.verdict, a.err
	case <-ctx.Done():
		return Verdict{}, fmt.Errorf("waiting for the decision on a place: %w", ctx.Err())
	}
}

func (q *queue) join(t *ticket) chan struct{} {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.turn == nil {
		q.turn = make(chan struct{}, 1)
	}
	q.waiting = append(q.waiting, t)
	return q.turn
}

func (q *queue) take() []*ticket {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	batch := q.waiting
	q.waiting = nil
	return batch
}

// decideBatch answers every ticket of the batch. A ticket whose requester has given up takes no place. The decision outlives
// the request of the one who makes it, since others wait for it, and ends when nobody does any more.
func decideBatch(ctx context.Context, batch []*ticket, decide func(context.Context, []Claim) ([]Verdict, error)) {
	claims := make([]Claim, 0, len(batch))
	asked := make([]*ticket, 0, len(batch))
	var latest time.Time
	for _, t := range batch {
		if err := t.ctx.Err(); err != nil {
			t.answer <- answer{err: fmt.Errorf("waiting for the decision on a place: %w", err)}
			continue
		}
		if deadline, _ := t.ctx.Deadline(); deadline.After(latest) {
			latest = deadline
		}
		claims = append(claims, t.claim)
		asked = append(asked, t)
	}
	if len(asked) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), latest)
	defer cancel()
	verdicts, err := survive(ctx, claims, decide)
	for i, t := range asked {
		if err != nil {
			t.answer <- answer{err: err}
			continue
		}
		t.answer <- answer{verdict: verdicts[i]}
	}
}

// survive makes an error of a panic: the decision runs outside of any request, where nobody else would catch it, and a replica
// that ends takes the decisions of others with it.
func survive(ctx context.Context, claims []Claim, decide func(context.Context, []Claim) ([]Verdict, error)) (verdicts []Verdict, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("deciding on a place: panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return decide(ctx, claims)
}
