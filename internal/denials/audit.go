package denials

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/audit"
	"github.com/ttlab/vmwarden/internal/policy"
)

// readAudit reads an audit log's entry; found is false for a line that only looks like one with a decision of ours.
func readAudit(line []byte) (r record, found bool, err error) {
	entry, err := audit.Parse(line)
	if err != nil {
		return record{}, false, err
	}
	if entry.Kind != "Event" || entry.Annotation("decision") == "" {
		return record{}, false, nil
	}
	if entry.Received.IsZero() {
		return record{}, false, fmt.Errorf("audit entry %q has no requestReceivedTimestamp", entry.AuditID)
	}
	d := auditedDenial(&entry)
	denied := len(d.Codes) > 0
	r = record{audited: true}
	if denied {
		r.denial = d
	}
	// What we admit and somebody behind us refuses is neither a denial of ours nor a wish come true.
	if !d.DryRun && (denied || !entry.Failed()) {
		r.attempt = &attempt{key: d.wish, at: d.Time, allowed: !entry.Failed(), review: d.Review}
	}
	return r, true, nil
}

func auditedDenial(e *audit.Entry) *Denial {
	d := &Denial{
		Time: e.Received, Decision: e.Decision(), Codes: e.Codes(), Operation: operation(e.Verb), Kind: audit.Kind(e.ObjectRef.Resource),
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Environment: e.Annotation("environment"), Session: e.Annotation("session"), RequesterKind: e.Annotation("requester-kind"),
		DryRun: e.Annotation("dry-run") != "", Message: e.Refusal(),
		Count: e.Annotation("count"), Limit: e.Annotation("limit"),
		Review: e.Annotation("review"), AuditID: e.AuditID, Sources: []string{AuditLog},
	}
	d.Requester, d.Impersonator = e.Requester()
	d.wish = keyOf(d)
	return d
}

// operation is the verb in the words of admission. An apply that creates has the verb patch; only our own log knows that it was a
// CREATE.
func operation(verb string) string {
	switch verb {
	case "create":
		return string(policy.Create)
	case "update", "patch":
		return string(policy.Update)
	case "delete", "deletecollection":
		return string(policy.Delete)
	}
	return verb
}
