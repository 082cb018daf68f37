// Package denials finds the webhook's denials in logs: kube-apiserver's audit log and the webhook's own. Lines become records
// (record.go, audit.go, own.go), a Collector keeps of them what memory allows (collect.go), and a Report says what was found
// (report.go) as a table, JSON, CSV or a page. It reads what it is handed and nothing else: no cluster is asked.
package denials

import (
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/policy"
)

// Where a denial was read.
const (
	AuditLog = "audit"
	OwnLog   = "webhook"
)

// Denial is one denied request, or in mode Audit one that would have been.
type Denial struct {
	// Time is when kube-apiserver received the request; where only our own log tells of it, when it was decided.
	Time time.Time `json:"time"`
	// Decision is policy.DeniedWord or policy.ReportedWord.
	Decision  string   `json:"decision"`
	Codes     []string `json:"codes"`
	Operation string   `json:"operation"`
	// Kind is the object's kind; of one that this version does not know, its resource.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Name may be empty: a deletecollection names nothing, and the audit log has one entry for all of it.
	Name string `json:"name,omitempty"`
	// UID is known to our own log alone.
	UID           string `json:"uid,omitempty"`
	Environment   string `json:"environment,omitempty"`
	Session       string `json:"session,omitempty"`
	Requester     string `json:"requester"`
	RequesterKind string `json:"requesterKind,omitempty"`
	// Impersonator is who really signed in, where the requester was impersonated; known to the audit log alone.
	Impersonator string `json:"impersonator,omitempty"`
	DryRun       bool   `json:"dryRun,omitempty"`
	// Message is what was found, in English where our own log tells it, else in the words that the requester was given.
	Message string `json:"message"`
	// Count and Limit are the namespace's places as they were counted; known to the audit log alone.
	Count string `json:"count,omitempty"`
	Limit string `json:"limit,omitempty"`
	// Review is the review's id, by which audit log and own log are joined; empty in logs of versions that did not write it.
	Review  string   `json:"review,omitempty"`
	AuditID string   `json:"auditID,omitempty"`
	Sources []string `json:"sources"`
	// Later is what became of it.
	Later Later `json:"later"`

	// wish finds later requests for the same.
	wish key
}

// Unknown lists those of the codes that this version of vmwarden does not have: a newer one wrote the log.
func Unknown(codes []string) []string {
	var unknown []string
	for _, code := range codes {
		if !slices.Contains(policy.Codes(), policy.Code(code)) {
			unknown = append(unknown, code)
		}
	}
	return unknown
}

// merge joins what the two logs tell of one denial. Each knows something that the other does not.
func (d *Denial) merge(other *Denial) {
	audit, own := d, other
	if slices.Contains(other.Sources, AuditLog) {
		audit, own = other, d
	}
	merged := *own
	merged.Time = audit.Time
	merged.Impersonator, merged.AuditID = audit.Impersonator, audit.AuditID
	merged.Count, merged.Limit = audit.Count, audit.Limit
	// What was allowed later is in the audit log, and told as the audit log tells it.
	merged.wish = audit.wish
	for _, source := range audit.Sources {
		if !slices.Contains(merged.Sources, source) {
			merged.Sources = append(merged.Sources, source)
		}
	}
	slices.Sort(merged.Sources)
	*d = merged
}
