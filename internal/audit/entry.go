// Package audit knows the entries of kube-apiserver's audit log, and what of the webhook's decisions stands in them. It reads what it is
// handed: no file is opened and no cluster asked.
package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/policy"
)

// AnnotationPrefix leads the annotations of our decisions: the validating webhook's name in the chart, and a slash.
const AnnotationPrefix = "validate.vmwarden.io/"

// Version is in every line of an audit log.
const Version = `"apiVersion":"audit.k8s.io/`

// Entry is what is read of an entry. Bodies are left alone, see Bodies.
type Entry struct {
	Kind       string `json:"kind"`
	Level      string `json:"level"`
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	// User signed in; who acts is told by Requester.
	User             User   `json:"user"`
	ImpersonatedUser *User  `json:"impersonatedUser"`
	ObjectRef        Object `json:"objectRef"`
	ResponseStatus   Status `json:"responseStatus"`
	// Received is when kube-apiserver received the request, Done when this stage of it was over.
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Done        time.Time         `json:"stageTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// User is an identity.
type User struct {
	Username string `json:"username"`
}

// Object is what a request is about. UID is known where the request's body names it, so not of a creation.
type Object struct {
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	UID         string `json:"uid"`
}

// Status is the answer. Where it is more than a code, kube-apiserver answered with a Status and no object.
type Status struct {
	Status  string  `json:"status"`
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Reason  string  `json:"reason"`
	Details Details `json:"details"`
}

// Details are an answer's.
type Details struct {
	Name   string  `json:"name"`
	UID    string  `json:"uid"`
	Causes []Cause `json:"causes"`
}

// Cause is one reason of a refusal.
type Cause struct {
	Code    string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Parse reads an entry. An error tells that the line has no entry's form, or tells no time.
func Parse(line []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("reading an audit entry: %w", err)
	}
	return e, nil
}

// Annotation is one of our decision's; empty where there is none.
func (e *Entry) Annotation(name string) string { return e.Annotations[AnnotationPrefix+name] }

// Requester is who acted, and who signed in where that is another.
func (e *Entry) Requester() (requester, impersonator string) {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser.Username, e.User.Username
	}
	return e.User.Username, ""
}

// SaysDryRun tells that the review or the URL says that the request was a dry run. A deletion may also say so in its body alone. Another
// parameter may hold the same words: whoever sends it could else have a change told as none.
func (e *Entry) SaysDryRun() bool {
	if e.Annotation("dry-run") != "" {
		return true
	}
	parsed, err := url.Parse(e.RequestURI)
	return err == nil && slices.Contains(parsed.Query()["dryRun"], metav1.DryRunAll)
}

// Failed tells that the request was refused, by whomever.
func (e *Entry) Failed() bool { return e.ResponseStatus.Code >= http.StatusBadRequest }

// Codes are those of our denial; none where we denied nothing.
func (e *Entry) Codes() []string {
	if codes := e.Annotation("code"); codes != "" {
		return strings.Split(codes, ",")
	}
	return nil
}

// Decision tells a denial from what only would be one. For a deletecollection the annotation is that of the first object's review,
// which may have been allowed; then the answer tells.
func (e *Entry) Decision() string {
	switch word := e.Annotation("decision"); {
	case word != policy.AllowedWord:
		return word
	case e.ResponseStatus.Code == http.StatusForbidden:
		return policy.DeniedWord
	}
	return policy.ReportedWord
}

// Refusal gives what the requester was told, without what kube-apiserver puts before it; empty where nothing was refused.
func (e *Entry) Refusal() string {
	if !e.Failed() {
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

// Kind gives a resource's kind, or the resource where this version does not know it.
func Kind(resource string) string {
	if known := policy.KindOf(resource); known != "" {
		return string(known)
	}
	return resource
}
