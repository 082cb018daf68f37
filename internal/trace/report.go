// Package trace tells the life of a virtual machine, or of a session's machines, as one time line. It joins what it is handed: logs
// (collect.go: kube-apiserver's audit log, the webhook's, reapjob's) and what a cluster holds (cluster.go: metadata, Events, the status
// of the passes). Lines become records (audit.go, own.go, cluster.go); the records of a name are told apart by machine (lives.go), and of
// each machine the questions are answered that an auditor asks (answers.go). Every line and every answer names its source.
package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/ttlab/vmwarden/internal/logs"
)

// Source is where something is known from.
type Source string

// The sources.
const (
	AuditLog   Source = "audit log"
	WebhookLog Source = "webhook log"
	ReapjobLog Source = "reapjob log"
	EventList  Source = "Event"
	Annotation Source = "annotation"
	Status     Source = "status ConfigMap"
	Cluster    Source = "cluster"
)

// Report is what was found.
type Report struct {
	// Asked is the name or the session that was asked for.
	Asked string `json:"asked"`
	// Machines are the lives that were found, in the order in which they began. A name that was used twice has two.
	Machines []Machine `json:"machines"`
	// Timeline is everything that was found, in the order of time.
	Timeline []Line `json:"timeline"`
	// NotKnown says what none of the sources can tell.
	NotKnown []string `json:"notKnown"`
	Read     Reading  `json:"read"`
}

// Found tells whether any source knows what was asked for.
func (r Report) Found() bool { return len(r.Timeline) > 0 }

// Machine is one life: one UID.
type Machine struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is empty where no source tells it: the audit log at the level Metadata may not.
	UID         string   `json:"uid,omitempty"`
	Session     string   `json:"session,omitempty"`
	Environment string   `json:"environment,omitempty"`
	Answers     []Answer `json:"answers"`
}

// Answer is what is known about one of the Questions.
type Answer struct {
	Question string `json:"question"`
	// Known is false where Text says why it is not.
	Known bool       `json:"known"`
	Time  *time.Time `json:"time,omitempty"`
	Who   string     `json:"who,omitempty"`
	Text  string     `json:"text,omitempty"`
	// Source is empty where nothing is known.
	Source Source `json:"source,omitempty"`
}

// The questions, as they are answered for every machine.
const (
	Created       = "created"
	Stamped       = "stamped"
	Denied        = "denied"
	Changed       = "changed"
	Extended      = "extended"
	Due           = "due"
	Reaped        = "reaped"
	DeletionAsked = "deletion asked"
	Gone          = "gone"
)

// Other words for what happened, in the time line alone.
const (
	WouldBeDenied = "would be denied"
	Refused       = "refused"
	Collection    = "collection deleted"
	Told          = "event"
	PassFailed    = "pass failed"
	PassHeld      = "pass held back"
	PassKept      = "pass kept"
	Ended         = "ended"
	Deleting      = "deleting"
)

// Line is one thing that happened.
type Line struct {
	Time time.Time `json:"time"`
	// Times is how often in a row; Last is the last time where that is more than once.
	Times  int        `json:"times"`
	Last   *time.Time `json:"last,omitempty"`
	Source Source     `json:"source"`
	// Who did it; Impersonator is who really signed in, where that is another.
	Who          string `json:"who,omitempty"`
	Impersonator string `json:"impersonator,omitempty"`
	// Object is kind and name; UID is that of the virtual machine in whose life it happened.
	Object string `json:"object"`
	UID    string `json:"uid,omitempty"`
	// What is one word for programs, Text tells more.
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	// Reference finds it again: an audit id, a review, an Event's name.
	Reference string `json:"reference,omitempty"`
}

// Reading is what was read and what could not be.
type Reading struct {
	// Inputs are the logs, Lines how many lines they have in all.
	Inputs []string `json:"inputs"`
	Lines  int      `json:"lines"`
	// AuditLog tells whether there was an audit log among them, and Cluster whether a cluster was asked.
	AuditLog bool          `json:"auditLog"`
	Cluster  bool          `json:"cluster"`
	Broken   []logs.Broken `json:"broken"`
	// Once tells that names were learned from stdin, which cannot be read again: what it held of them before that is not told.
	Once bool `json:"once"`
	// LeftOut is how many records were older than the newest that are told.
	LeftOut int `json:"leftOut"`
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}
