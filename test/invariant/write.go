package invariant

import (
	"net/http"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Write is one request of the audit log.
type Write struct {
	AuditID   string
	Verb      string
	Username  string
	Groups    []string
	Resource  string
	Sub       string
	Namespace string
	Name      string
	// Arrived and Answered bound the moment at which it took effect.
	Arrived, Answered time.Time
	// Code is the HTTP status; 0 where the answer is not known.
	Code   int
	DryRun bool
	// Denied is true where our webhook denied it.
	Denied bool
	// Environment and Session are whose the object is by our own annotation of the review; empty where there was none.
	Environment, Session string
	// Precondition is the UID under which a deletion was asked for, and Orphans whether it leaves what it owns behind.
	Precondition string
	Orphans      bool
	// BodyKnown is false where the audit policy left the request's body out.
	BodyKnown bool
	// Object is what the answer shows; nil where it shows none.
	Object *Object
}

// Object is the metadata of an object in an answer.
type Object struct {
	UID         string
	Labels      map[string]string
	Annotations map[string]string
	// TemplateLabels are spec.template.metadata.labels.
	TemplateLabels map[string]string
}

// succeeded tells whether it took effect for certain; a dry run never does.
func (w Write) succeeded() bool {
	return !w.DryRun && w.Code >= http.StatusOK && w.Code < http.StatusMultipleChoices
}

// mayHaveSucceeded tells whether it may have taken effect: also where the API server lost its own answer.
func (w Write) mayHaveSucceeded() bool {
	return !w.DryRun && (w.succeeded() || w.Code == 0 || w.Code >= http.StatusInternalServerError || w.Code == http.StatusRequestTimeout)
}

func (w Write) deletes() bool { return w.Verb == "delete" || w.Verb == "deletecollection" }

func (w Write) changes() bool { return w.Verb == "update" || w.Verb == "patch" }

// onMachines tells whether the request is on virtual machines of the guarded namespace.
func (h *History) onMachines(w Write) bool {
	return w.Resource == "virtualmachines" && w.Namespace == h.Configuration.VMNamespace
}

func (h *History) requester(w Write) lab.Requester {
	return h.Configuration.Contract().Identities.Classify(w.Username, w.Groups)
}
