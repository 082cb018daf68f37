package denials

import (
	"slices"
	"time"
)

// newest keeps the newest of what it is given, whatever the order, and so bounds memory: between limit and twice as many are held.
type newest[T any] struct {
	limit int
	at    func(T) time.Time
	// forget is told what is let go; it may be nil.
	forget func(T)

	held []T
	// dropped is how many were let go, floor the time of the newest of them.
	dropped int
	floor   time.Time
}

func (n *newest[T]) add(item T) {
	n.held = append(n.held, item)
	if len(n.held) >= 2*n.limit {
		n.trim()
	}
}

// trim sorts what is held by time and lets go of all but the newest.
func (n *newest[T]) trim() {
	slices.SortStableFunc(n.held, func(a, b T) int { return n.at(a).Compare(n.at(b)) })
	excess := max(0, len(n.held)-n.limit)
	for _, item := range n.held[:excess] {
		n.drop(item)
	}
	// In place: a subslice would keep what was let go in memory.
	n.held = slices.Delete(n.held, 0, excess)
}

func (n *newest[T]) drop(item T) {
	n.dropped++
	if n.at(item).After(n.floor) {
		n.floor = n.at(item)
	}
	if n.forget != nil {
		n.forget(item)
	}
}
