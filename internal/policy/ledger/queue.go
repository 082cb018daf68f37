package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// decisionTimeout bounds one decision. It stays below the webhook's own timeoutSeconds, so that the requester reads our
// answer and not the API server's time-out.
const decisionTimeout = 8 * time.Second

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
	t := &ticket{ctx: ctx, claim: claim, answer: make(chan answer, 1)}
	turn := q.join(t)
	select {
	case a := <-t.answer:
		return a.verdict, a.err
	case <-ctx.Done():
		return Verdict{}, fmt.Errorf("waiting for the decision on a place: %w", ctx.Err())
	case turn <- struct{}{}:
	}
	defer func() { <-turn }()
	if batch := q.take(); len(batch) > 0 {
		decideBatch(ctx, batch, decide)
	}
	// This ticket was in the batch, or whoever had the turn before took it into theirs. Only a decision that panicked leaves
	// it unanswered.
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
// the request of the one who makes it, since others wait for it.
func decideBatch(ctx context.Context, batch []*ticket, decide func(context.Context, []Claim) ([]Verdict, error)) {
	claims := make([]Claim, 0, len(batch))
	asked := make([]*ticket, 0, len(batch))
	for _, t := range batch {
		if err := t.ctx.Err(); err != nil {
			t.answer <- answer{err: fmt.Errorf("waiting for the decision on a place: %w", err)}
			continue
		}
		claims = append(claims, t.claim)
		asked = append(asked, t)
	}
	if len(asked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decisionTimeout)
	defer cancel()
	verdicts, err := decide(ctx, claims)
	for i, t := range asked {
		if err != nil {
			t.answer <- answer{err: err}
			continue
		}
		t.answer <- answer{verdict: verdicts[i]}
	}
}
