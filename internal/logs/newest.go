package logs

import (
	"slices"
	"time"
)

// Newest keeps the newest of what it is given, whatever the order, and so bounds memory: between Limit and twice as many are held.
type Newest[T any] struct {
	Limit int
	At    func(T) time.Time
	// Forget is told what is let go; it may be nil.
	Forget func(T)

	// Held is what is kept; after Trim the oldest comes first.
	Held []T
	// Dropped is how many were let go, Floor the time of the newest of them.
	Dropped int
	Floor   time.Time
}

// Add takes an item.
func (n *Newest[T]) Add(item T) {
	n.Held = append(n.Held, item)
	if len(n.Held) >= 2*n.Limit {
		n.Trim()
	}
}

// Trim sorts what is held by time and lets go of all but the newest.
func (n *Newest[T]) Trim() {
	slices.SortStableFunc(n.Held, func(a, b T) int { return n.At(a).Compare(n.At(b)) })
	excess := max(0, len(n.Held)-n.Limit)
	for _, item := range n.Held[:excess] {
		n.drop(item)
	}
	// In place: a subslice would keep what was let go in memory.
	n.Held = slices.Delete(n.Held, 0, excess)
}

func (n *Newest[T]) drop(item T) {
	n.Dropped++
	if n.At(item).After(n.Floor) {
		n.Floor = n.At(item)
	}
	if n.Forget != nil {
		n.Forget(item)
	}
}
