// Package offline judges manifests without a cluster, by the very handlers that the webhook serves.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy"
)

// Checker judges manifests as the webhook would.
type Checker struct {
	mutator   *policy.Mutator
	validator *policy.Validator
	world     *World
}

// New makes a checker for a world at a time.
func New(contract lab.Contract, world *World, now clock.PassiveClock) *Checker {
	log := zap.NewNop()
	return &Checker{
		mutator: &policy.Mutator{Contract: contract, Groups: world, Clock: now, Log: log},
		validator: &policy.Validator{
			Contract: contract, Places: world, Surroundings: world, Clock: now, Log: log, Metrics: policy.NewMetrics(prometheus.NewRegistry()),
			CapMetrics: policy.NewCapMetrics(contract, prometheus.NewRegistry()), Events: &record.FakeRecorder{},
		},
		world: world,
	}
}

// Request is what is asked, and who asks.
type Request struct {
	Operation policy.Operation
	User      string
	Groups    []string
	// Object is the object as it is sent; for a DELETE the one that is deleted.
	Object *unstructured.Unstructured
	// Old is the object as it is stored, for an UPDATE.
	Old *unstructured.Unstructured
	// Orphan deletes with propagationPolicy Orphan.
	Orphan bool
}

// Outcome is what would come of a request.
type Outcome struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Allowed   bool   `json:"allowed"`
	// Causes are the reasons for a denial.
	Causes []Cause `json:"causes"`
	// Warnings would be shown to the requester.
	Warnings []string `json:"warnings"`
	// Patch is what would be added (RFC 6902); null for nothing.
	Patch json.RawMessage `json:"patch"`
	// Before and After are the object as sent and as it would be stored.
	Before *unstructured.Unstructured `json:"-"`
	After  *unstructured.Unstructured `json:"-"`
}

// Cause is one reason for a denial.
type Cause struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Check judges one request. What is admitted exists for those that follow.
func (c *Checker) Check(ctx context.Context, request Request) (Outcome, error) {
	outcome := Outcome{
		Kind: request.Object.GetKind(), Namespace: request.Object.GetNamespace(), Name: request.Object.GetName(),
		Causes: []Cause{}, Warnings: []string{}, Before: request.Object, After: request.Object,
	}
	if !c.reviewed(request.Object) {
		outcome.Allowed = true
		outcome.Warnings = append(outcome.Warnings, fmt.Sprintf("%s %s in namespace %q is not reviewed by vmwarden", outcome.Kind, outcome.Name, outcome.Namespace))
		return outcome, nil
	}
	review, err := newReview(request)
	if err != nil {
		return outcome, err
	}
	if request.Operation != policy.Delete {
		if err := c.mutate(ctx, &review, &outcome); err != nil {
			return outcome, err
		}
	}
	response := c.validator.Handle(ctx, review)
	outcome.Allowed = response.Allowed
	outcome.Warnings = append(outcome.Warnings, response.Warnings...)
	if response.Result != nil && response.Result.Details != nil {
		for _, cause := range response.Result.Details.Causes {
			outcome.Causes = append(outcome.Causes, Cause{Code: string(cause.Type), Field: cause.Field, Message: cause.Message})
		}
	}
	if outcome.Allowed && request.Operation == policy.Create {
		c.world.Existing = append(c.world.Existing, outcome.After)
	}
	return outcome, nil
}

// reviewed tells whether kube-apiserver would ask the webhook about such an object at all.
func (c *Checker) reviewed(object *unstructured.Unstructured) bool {
	contract := c.world.Contract
	namespaces := append([]string{contract.VMNamespace}, contract.PodNamespaces...)
	return slices.Contains(namespaces, object.GetNamespace()) && policy.Judged(policy.Kind(object.GetKind()))
}

// mutate applies the Mutator's patch to the review and the outcome.
func (c *Checker) mutate(ctx context.Context, review *admission.Request, outcome *Outcome) error {
	response := c.mutator.Handle(ctx, *review)
	if err := response.Complete(*review); err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	if len(response.Patch) == 0 {
		return nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return fmt.Errorf("reading the patch: %w", err)
	}
	if review.Object.Raw, err = patch.Apply(review.Object.Raw); err != nil {
		return fmt.Errorf("applying the patch: %w", err)
	}
	outcome.Patch = response.Patch
	outcome.After = &unstructured.Unstructured{}
	if err := outcome.After.UnmarshalJSON(review.Object.Raw); err != nil {
		return fmt.Errorf("reading the patched object: %w", err)
	}
	return nil
}

// newReview makes the review that kube-apiserver would send.
func newReview(request Request) (admission.Request, error) {
	resource, _ := meta.UnsafeGuessKindToResource(request.Object.GroupVersionKind())
	review := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "offline", Operation: admissionv1.Operation(request.Operation),
		Resource:  metav1.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource},
		Namespace: request.Object.GetNamespace(), Name: request.Object.GetName(),
		UserInfo: authenticationv1.UserInfo{Username: request.User, Groups: request.Groups},
	}}
	object, err := request.Object.MarshalJSON()
	if err != nil {
		return review, fmt.Errorf("encoding the object: %w", err)
	}
	if request.Operation == policy.Delete {
		review.OldObject = runtime.RawExtension{Raw: object}
		if request.Orphan {
			review.Options = runtime.RawExtension{Raw: []byte(`{"propagationPolicy":"Orphan"}`)}
		}
		return review, nil
	}
	review.Object = runtime.RawExtension{Raw: object}
	if request.Operation == policy.Update {
		old, err := request.Old.MarshalJSON()
		if err != nil {
			return review, fmt.Errorf("encoding the old object: %w", err)
		}
		review.OldObject = runtime.RawExtension{Raw: old}
	}
	return review, nil
}
