package policy

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Mutator completes lab VMs at their creation. It denies nothing: that is the Validator's, which sees what all mutating
// webhooks made of the object.
type Mutator struct {
	Contract lab.Contract
	Clock    clock.PassiveClock
}

// Handle answers a mutating review with a patch, empty where there is nothing to add.
func (m *Mutator) Handle(_ context.Context, request admission.Request) admission.Response {
	allowed := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
	f, err := readFacts(m.Contract.Identities, request, m.Clock.Now())
	if err != nil {
		// The Validator reads the same object, and denies it with what could not be read.
		return allowed
	}
	allowed.Patches = stamps(m.Contract, f)
	return allowed
}
