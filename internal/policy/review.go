package policy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/ttlab/vmwarden/internal/lab"
)

// This file is the only one that knows AdmissionReview: it turns a request into facts, and a decision into a response.

// readFacts gathers the facts of a request. Facts are usable for a log line even where it answers an error: the object could
// not be read then.
func readFacts(identities *lab.Identities, request admission.Request, now time.Time) (Facts, error) {
	f := Facts{
		Operation: Operation(request.Operation),
		Requester: identities.Classify(request.UserInfo.Username, request.UserInfo.Groups),
		Namespace: request.Namespace,
		Name:      request.Name,
		DryRun:    request.DryRun != nil && *request.DryRun,
		Now:       now,
	}
	var errNew, errOld error
	switch f.Operation {
	case Create:
		f.New, errNew = readObject("object", request.Object.Raw)
	case Update:
		f.New, errNew = readObject("object", request.Object.Raw)
		f.Old, errOld = readObject("oldObject", request.OldObject.Raw)
	case Delete:
		// A DELETE has no object, only an oldObject.
		f.Old, errOld = readObject("oldObject", request.OldObject.Raw)
	default:
		return f, fmt.Errorf("operation %q is not one that vmwarden judges", request.Operation)
	}
	if err := errors.Join(errNew, errOld); err != nil {
		return f, err
	}
	f.UID = f.Subject().Metadata.UID
	if f.Name == "" {
		// A deletecollection leaves request.name empty; so does a create with generateName at mutation.
		f.Name = f.Subject().Metadata.Name
	}
	return f, nil
}

// rawMetadata is the part of an object's metadata that is read. Its maps stay nil where the object has none.
type rawMetadata struct {
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
}

type rawObject struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		Template *struct {
			Metadata *rawMetadata `json:"metadata"`
		} `json:"template"`
	} `json:"spec"`
}

// readObject reads the fields that the rules need, by the API server's own decoder: encoding/json would take a field "Labels",
// which the API server keeps as an unknown one, for "labels".
func readObject(what string, raw []byte) (*Object, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("the review has no %s", what)
	}
	var content rawObject
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return nil, fmt.Errorf("reading the review's %s: %w", what, err)
	}
	object := &Object{Metadata: Metadata(content.Metadata), HasTemplate: content.Spec.Template != nil}
	if object.HasTemplate && content.Spec.Template.Metadata != nil {
		template := Metadata(*content.Spec.Template.Metadata)
		object.Template = &template
	}
	return object, nil
}

// unreadable is the decision on a request that no rule can judge.
func unreadable(err error) Decision {
	return Decision{Violations: []Violation{{
		Code:   ObjectUnreadable,
		Found:  err.Error(),
		Remedy: "send an object of the form that its CustomResourceDefinition describes",
	}}}
}

// respond puts a decision into the API server's terms.
func respond(contract lab.Contract, f Facts, d Decision) admission.Response {
	response := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed:          d.Allowed(),
		Warnings:         d.Warnings,
		AuditAnnotations: auditAnnotations(contract, f, d),
	}}
	if d.Allowed() {
		return response
	}
	causes := make([]metav1.StatusCause, len(d.Violations))
	for i, violation := range d.Violations {
		causes[i] = metav1.StatusCause{Type: metav1.CauseType(violation.Code), Field: violation.FieldPath(), Message: violation.Message()}
	}
	response.Result = &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: d.Message(),
		Details: &metav1.StatusDetails{Name: f.Name, Group: "kubevirt.io", Kind: "virtualmachines", Causes: causes},
	}
	return response
}

// auditAnnotations land in the API server's audit log, each key led by the webhook's name.
func auditAnnotations(contract lab.Contract, f Facts, d Decision) map[string]string {
	annotations := map[string]string{
		"decision":       "allow",
		"requester-kind": string(f.Requester.Kind),
	}
	if !d.Allowed() {
		annotations["decision"] = "deny"
		annotations["code"] = strings.Join(d.Codes(), ",")
	}
	environment, session := belongings(contract, f)
	setUnlessEmpty(annotations, "environment", environment)
	setUnlessEmpty(annotations, "session", session)
	if d.Places != nil {
		annotations["count"] = strconv.Itoa(d.Places.Used + d.Places.Reserved)
		annotations["limit"] = strconv.Itoa(d.Places.Limit)
	}
	return annotations
}

// belongings are the environment and the session of the object that the request is about.
func belongings(contract lab.Contract, f Facts) (environment, session string) {
	if f.Subject() == nil {
		return f.Requester.Environment, ""
	}
	labels := f.Subject().Metadata.Labels
	return labels[contract.Labels.Environment], labels[contract.Labels.Session]
}

func setUnlessEmpty(annotations map[string]string, key, value string) {
	if value != "" {
		annotations[key] = value
	}
}
