package policy

import (
	"context"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
)

// MutatePath is where the chart has the API server ask a Mutator.
const MutatePath = "/mutate"

// lookTimeout bounds what is looked up besides the count: a few reads by name, which take milliseconds or hang.
const lookTimeout = 3 * time.Second

// Groups finds the first virtual machine of a session.
type Groups interface {
	Lead(ctx context.Context, namespace, environment, session string) (*metav1.OwnerReference, error)
}

// Mutator completes lab objects at their creation. It denies nothing: that is the Validator's, which sees what all mutating
// webhooks made of the object.
type Mutator struct {
	Contract lab.Contract
	// ReportOnly adds nothing.
	ReportOnly bool
	Groups     Groups
	Clock      clock.PassiveClock
	Log        *zap.Logger
}

// Handle answers a mutating review with a patch, empty where there is nothing to add.
func (m *Mutator) Handle(ctx context.Context, request admission.Request) admission.Response {
	allowed := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
	if m.ReportOnly {
		return allowed
	}
	f, err := readFacts(m.Contract.Identities, request, m.Clock.Now())
	if err != nil {
		// The Validator reads the same object, and denies it with what could not be read.
		return allowed
	}
	allowed.Patches = stamps(m.Contract, f, m.lead(ctx, f))
	return allowed
}

// lead finds the lead of the session that a backend's new virtual machine joins. Without it the member is admitted all the
// same: it is reclaimed by its session, only not by the garbage collector.
func (m *Mutator) lead(ctx context.Context, f Facts) *metav1.OwnerReference {
	if f.Kind != VirtualMachine || f.Operation != Create || !f.Requester.ActsForEnvironment() || len(f.New.Metadata.OwnerReferences) > 0 {
		return nil
	}
	session := f.New.Metadata.Labels[m.Contract.Labels.Session]
	if m.Contract.SessionIDs.Validate(session) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lead, err := m.Groups.Lead(ctx, f.Namespace, f.Requester.Environment, session)
	if err != nil {
		m.Log.Warn("the lead of a session could not be looked up; its member stays without an owner", zap.String("session", session), zap.Error(err))
		return nil
	}
	return lead
}
