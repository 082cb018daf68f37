package policy

import (
	"bytes"
	"encoding/json"
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
		Review:    request.UID,
		Kind:      resources[request.Resource.Resource],
		Operation: Operation(request.Operation),
		Requester: identities.Classify(request.UserInfo.Username, request.UserInfo.Groups),
		Namespace: request.Namespace,
		Name:      request.Name,
		DryRun:    request.DryRun != nil && *request.DryRun,
		Now:       now,
	}
	if f.Kind == "" {
		return f, fmt.Errorf("resource %q is not one that vmwarden judges", request.Resource.Resource)
	}
	var errNew, errOld, errOptions error
	switch f.Operation {
	case Create:
		f.New, errNew = readObject(f.Kind, "object", request.Object.Raw)
	case Update:
		f.Old, errOld = readStored(f.Kind, request.OldObject.Raw)
		f.New, errNew = readObject(f.Kind, "object", request.Object.Raw)
		if errNew != nil && f.Terminating() {
			// Nothing starts of it any more, and its finalizers have to go.
			f.New, errNew = readMetadata(request.Object.Raw)
		}
	case Delete:
		// A DELETE has no object, only an oldObject.
		f.Old, errOld = readStored(f.Kind, request.OldObject.Raw)
		f.Orphaning, errOptions = readOrphaning(request.Options.Raw)
	default:
		return f, fmt.Errorf("operation %q is not one that vmwarden judges", request.Operation)
	}
	if err := errors.Join(errNew, errOld, errOptions); err != nil {
		return f, err
	}
	f.UID = f.Subject().Metadata.UID
	f.Raw = request.Object.Raw
	if f.Name == "" {
		// A deletecollection leaves request.name empty; so does a create with generateName at mutation.
		f.Name = f.Subject().Metadata.Name
	}
	return f, nil
}

// rawMetadata is the part of an object's metadata that is read. Its maps stay nil where the object has none.
type rawMetadata struct {
	Name              string                  `json:"name"`
	UID               types.UID               `json:"uid"`
	Labels            map[string]string       `json:"labels"`
	Annotations       map[string]string       `json:"annotations"`
	Finalizers        []string                `json:"finalizers"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	CreationTimestamp metav1.Time             `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
}

type rawMachine struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		DataVolumeTemplates []lab.DataVolumeTemplate `json:"dataVolumeTemplates"`
		Instancetype        json.RawMessage          `json:"instancetype"`
		Preference          json.RawMessage          `json:"preference"`
		Template            *struct {
			Metadata *rawMetadata    `json:"metadata"`
			Spec     rawTemplateSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		InstancetypeRef json.RawMessage `json:"instancetypeRef"`
	} `json:"status"`
}

// rawTemplateSpec is read for what it refers to, and kept whole.
type rawTemplateSpec struct {
	lab.ReferringSpec
	raw []byte
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *rawTemplateSpec) UnmarshalJSON(raw []byte) error {
	s.raw = bytes.Clone(raw)
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, &s.ReferringSpec)
}

type rawPod struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
	} `json:"spec"`
}

type rawOther struct {
	Metadata rawMetadata `json:"metadata"`
}

// readObject reads the fields that the rules need, by the API server's own decoder: encoding/json would take a field "Labels",
// which the API server keeps as an unknown one, for "labels".
func readObject(kind Kind, what string, raw []byte) (*Object, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("the review has no %s", what)
	}
	var object *Object
	var err error
	switch kind {
	case VirtualMachine:
		object, err = readMachine(raw)
	case Pod:
		var content rawPod
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &content)
		object = &Object{Metadata: Metadata(content.Metadata), ActiveDeadlineSeconds: content.Spec.ActiveDeadlineSeconds}
	default:
		object, err = readMetadata(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the review's %s: %w", what, err)
	}
	return object, nil
}

// readMetadata reads no more of an object than its metadata.
func readMetadata(raw []byte) (*Object, error) {
	var content rawOther
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return nil, err
	}
	return &Object{Metadata: Metadata(content.Metadata)}, nil
}

// readStored reads an object as it is stored, or no more than its metadata where the rest has no form that can be read: KubeVirt's schema lets
// anything into the template's metadata, and what came in before us could else be mended and deleted by nobody. Whatever a change makes of
// it is judged as new.
func readStored(kind Kind, raw []byte) (*Object, error) {
	object, err := readObject(kind, "oldObject", raw)
	if err != nil && len(raw) > 0 {
		if bare, unreadable := readMetadata(raw); unreadable == nil {
			return bare, nil
		}
	}
	return object, err
}

// readMachine reads a virtual machine once: decoding is most of what a review costs.
func readMachine(raw []byte) (*Object, error) {
	var content rawMachine
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return nil, err
	}
	object := &Object{Metadata: Metadata(content.Metadata), Launch: Launch{
		Instancetype: content.Spec.Instancetype, Preference: content.Spec.Preference, InstancetypeRef: content.Status.InstancetypeRef,
	}}
	var refers lab.ReferringSpec
	if template := content.Spec.Template; template != nil {
		object.HasTemplate = true
		object.Template = (*Metadata)(template.Metadata)
		object.Launch.Spec, refers = template.Spec.raw, template.Spec.ReferringSpec
	}
	object.References = lab.NewReferences(content.Spec.DataVolumeTemplates, refers)
	return object, nil
}

// readOrphaning tells whether the options of a DELETE leave what the object owns behind; orphanDependents is the older way to
// say so.
func readOrphaning(raw []byte) (bool, error) {
	if len(raw) == 0 {
		return false, nil
	}
	var options metav1.DeleteOptions
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &options); err != nil {
		return false, fmt.Errorf("reading the review's options: %w", err)
	}
	byPolicy := options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationOrphan
	//nolint:staticcheck // Deprecated, and still obeyed by kube-apiserver.
	byFlag := options.OrphanDependents != nil && *options.OrphanDependents
	return byPolicy || byFlag, nil
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
func respond(contract lab.Contract, messages Messages, f Facts, d Decision) admission.Response {
	response := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed:          d.Admitted(),
		Warnings:         d.Warnings,
		AuditAnnotations: auditAnnotations(contract, f, d),
	}}
	if d.Allowed() {
		return response
	}
	say := func(v Violation) string { return messages.text(contract, f, d, v) }
	if d.ReportOnly {
		for _, violation := range d.Violations {
			response.Warnings = append(response.Warnings, "vmwarden only observes; it would deny this: "+string(violation.Code)+": "+say(violation))
		}
		return response
	}
	causes := make([]metav1.StatusCause, len(d.Violations))
	for i, violation := range d.Violations {
		causes[i] = metav1.StatusCause{Type: metav1.CauseType(violation.Code), Field: violation.FieldPath(), Message: say(violation)}
	}
	response.Result = &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: d.Message(say),
		Details: &metav1.StatusDetails{Name: f.Name, Kind: string(f.Kind), Causes: causes},
	}
	return response
}

// auditAnnotations land in the API server's audit log, each key led by the webhook's name.
func auditAnnotations(contract lab.Contract, f Facts, d Decision) map[string]string {
	annotations := map[string]string{
		"decision":       d.word(),
		"requester-kind": string(f.Requester.Kind),
	}
	if !d.Allowed() {
		annotations["code"] = strings.Join(d.Codes(), ",")
		// The log line of this denial has it too. Only a denial brings it: of a deletecollection's many reviews kube-apiserver keeps
		// each annotation's first value, and it should be that of the review which brought the code.
		setUnlessEmpty(annotations, "review", string(f.Review))
	}
	if f.DryRun {
		// The audit log itself tells it of a DELETE only where it holds the body: the options of a DELETE are there, not in the URL.
		annotations["dry-run"] = "true"
	}
	environment, session := belongings(contract, f)
	setUnlessEmpty(annotations, "environment", environment)
	setUnlessEmpty(annotations, "session", session)
	if d.Places != nil {
		annotations["count"] = strconv.Itoa(d.Places.Tally.Total.Used + d.Places.Tally.Total.Reserved)
		annotations["limit"] = strconv.Itoa(d.Places.Tally.Limits.VMs)
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
