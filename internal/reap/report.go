package reap

import "time"

// Result is what became of an item.
type Result string

const (
	// Done means that what was planned was done, or was found done.
	Done Result = "Done"
	// Kept means that a last look showed that it must not be done, or not now. That is no failure.
	Kept Result = "Kept"
	// Failed means that it was not done and is tried again by the next pass.
	Failed Result = "Failed"
)

// Item is an action and what became of it.
type Item struct {
	Action
	Result Result
	// Detail says why an item was kept, or what failed.
	Detail string
}

// Report is the outcome of a pass.
type Report struct {
	Environment string
	StartedAt   time.Time
	Duration    time.Duration
	Items       []Item
	Holds       []Hold
	Notices     []Notice
}

// Exit statuses of a pass.
const (
	ExitClean       = 0
	ExitCouldNotRun = 1
	ExitItemsFailed = 3
	ExitHeld        = 4
)

// ExitStatus is the pass's exit status. What kept a whole direction from running outweighs items that failed: while it lasts
// nothing in that direction is reclaimed.
func (r Report) ExitStatus() int {
	status := ExitClean
	if r.count("", Failed) > 0 {
		status = ExitItemsFailed
	}
	for _, hold := range r.Holds {
		if hold.Cause == Aborted {
			return ExitCouldNotRun
		}
		status = ExitHeld
	}
	return status
}

// count counts the items of a direction, or of all for an empty one, by their result.
func (r Report) count(direction Direction, result Result) int {
	n := 0
	for _, item := range r.Items {
		if (direction == "" || item.Direction == direction) && item.Result == result {
			n++
		}
	}
	return n
}
