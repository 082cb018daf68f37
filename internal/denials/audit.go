package denials

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/policy"
)

// annotationPrefix leads the annotations of our decisions: the validating webhook's name in the chart, and a slash.
const annotationPrefix = "validate.vmwarden.io/"

// auditVersion is in every line of an audit log.
const auditVersion = `"apiVersion":"audit.k8s.io/`

// auditEvent is what is read of an entry of kube-apiserver's audit log. Bodies of requests are left alone.
type auditEvent struct {
	Kind    string `json:"kind"`
	AuditID string `json:"auditID"`
	Verb    string `json:"verb"`
	User    struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Details struct {
			Causes []auditCause `json:"causes"`
		} `json:"details"`
	} `json:"responseStatus"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

type auditCause struct {
	Code    string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// readAudit reads an audit log's entry; found is false for a line that only looks like one with a decision of ours.
func readAudit(line []byte) (r record, found bool, err error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return record{}, false, fmt.Errorf("reading an audit entry: %w", err)
	}
	decision := event.annotation("decision")
	if event.Kind != "Event" || decision == "" {
		return record{}, false, nil
	}
	if event.Received.IsZero() {
		return record{}, false, fmt.Errorf("audit entry %q has no requestReceivedTimestamp", event.AuditID)
	}
	d := event.denial()
	denied := len(d.Codes) > 0
	failed := event.ResponseStatus.Code >= http.StatusBadRequest
	r = record{audited: true}
	if denied {
		r.denial = d
	}
	// What we admit and somebody behind us refuses is neither a denial of ours nor a wish come true.
	if !d.DryRun && (denied || !failed) {
		r.attempt = &attempt{key: d.wish, at: d.Time, allowed: !failed, review: d.Review}
	}
	return r, true, nil
}

func (e *auditEvent) annotation(name string) string { return e.Annotations[annotationPrefix+name] }

func (e *auditEvent) denial() *Denial {
	d := &Denial{
		Time: e.Received, Decision: e.decision(), Operation: operation(e.Verb), Kind: kind(e.ObjectRef.Resource),
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Environment: e.annotation("environment"), Session: e.annotation("session"),
		Requester: e.User.Username, RequesterKind: e.annotation("requester-kind"),
		DryRun: e.annotation("dry-run") != "", Message: e.message(),
		Count: e.annotation("count"), Limit: e.annotation("limit"),
		Review: e.annotation("review"), AuditID: e.AuditID, Sources: []string{AuditLog},
	}
	if e.ImpersonatedUser != nil {
		d.Requester, d.Impersonator = e.ImpersonatedUser.Username, e.User.Username
	}
	if codes := e.annotation("code"); codes != "" {
		d.Codes = strings.Split(codes, ",")
	}
	d.wish = keyOf(d)
	return d
}

// decision tells a denial from what only would be one. For a deletecollection the annotation is that of the first object's review,
// which may have been allowed; then the answer tells.
func (e *auditEvent) decision() string {
	switch word := e.annotation("decision"); {
	case word != policy.AllowedWord:
		return word
	case e.ResponseStatus.Code == http.StatusForbidden:
		return policy.DeniedWord
	}
	return policy.ReportedWord
}

// message gives what the requester was told, without what kube-apiserver puts before it; empty where nothing was refused.
func (e *auditEvent) message() string {
	if e.ResponseStatus.Code < http.StatusBadRequest {
		return ""
	}
	var parts []string
	for _, cause := range e.ResponseStatus.Details.Causes {
		part := cause.Code + ": " + cause.Message
		if cause.Field != "" {
			part += " (" + cause.Field + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return e.ResponseStatus.Message
	}
	return strings.Join(parts, " | ")
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

func kind(resource string) string {
	if known := policy.KindOf(resource); known != "" {
		return string(known)
	}
	return resource
}
