// Package invariant judges what has happened: given kube-apiserver's audit log, the history of the sessions tables and the configuration,
// it says whether one of the design's invariants was ever broken.
//
// It speaks only of what is certain. A request may take effect at any moment between its arrival and its answer, and one whose answer was
// lost may have taken effect or not; where one order of these moments breaks nothing, nothing counts as broken.
package invariant

import (
	"time"

	"github.com/ttlab/vmwarden/internal/config"
)

// History is what happened.
type History struct {
	// Configuration is what vmwarden ran with all the while.
	Configuration *config.WardenConfig
	// Writes are the API server's audited writes, in the order of their answers.
	Writes []Write
	// Changes are those of the sessions' rows, in their order.
	Changes []Change
	// ReaperRole is the database role of all reapers.
	ReaperRole string
	// Interruptions are moments at which an API server died: what it was doing then is in no log.
	Interruptions []time.Time
	// DeadlineSlack is how long after its deadline a virtual machine may still exist: the time from one pass to the next, and what a
	// deletion takes. 0: nobody was there to delete, and deadlines are not judged.
	DeadlineSlack time.Duration
}

// Violation is one breach of an invariant.
type Violation struct {
	// Invariant names it, as docs/reliability.md does.
	Invariant string `json:"invariant"`
	// At is when it was broken for certain.
	At time.Time `json:"at"`
	// What says by whom and of what.
	What string `json:"what"`
	// AuditID is the audit log's entry, where there is one.
	AuditID string `json:"auditID,omitempty"`
}

// Verdict is the outcome of a check. Without the numbers "no violation" would say nothing.
type Verdict struct {
	Violations []Violation `json:"violations"`
	// Machines is how many virtual machines were seen to be created, Deletions how many deletions by reapers were judged, Changes how
	// many changes of rows, and Writes how many requests.
	Machines  int `json:"machines"`
	Deletions int `json:"deletions"`
	Changes   int `json:"changes"`
	Writes    int `json:"writes"`
}
