package denials

import (
	"encoding/json"
	"fmt"

	"github.com/ttlab/vmwarden/internal/policy"
)

// readOwn reads a line of our own log. It tells of denials alone: what was allowed is in the audit log only.
func readOwn(line []byte) (record, error) {
	var l policy.LoggedDenial
	if err := json.Unmarshal(line, &l); err != nil {
		return record{}, fmt.Errorf("reading a line of the webhook's log: %w", err)
	}
	decision := map[string]string{policy.DeniedMessage: policy.DeniedWord, policy.ReportedMessage: policy.ReportedWord}[l.Message]
	if decision == "" {
		return record{}, nil
	}
	if l.Time.IsZero() || len(l.Codes) == 0 {
		return record{}, fmt.Errorf("a denial in the webhook's log has no ts or no codes")
	}
	d := &Denial{
		Time: l.Time, Decision: decision, Codes: l.Codes, Operation: l.Operation, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name,
		UID: l.UID, Environment: l.Environment, Session: l.Session, Requester: l.Requester, RequesterKind: l.RequesterKind,
		DryRun: l.DryRun, Message: l.Text, Review: l.Review, Sources: []string{OwnLog},
	}
	d.wish = keyOf(d)
	r := record{denial: d}
	// What only would be denied went through, or not: the audit log has the answer.
	if !d.DryRun && decision == policy.DeniedWord {
		r.attempt = &attempt{key: d.wish, at: d.Time, review: d.Review}
	}
	return r, nil
}
