package offline

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// World is what is taken to exist: it answers what the webhook would ask the API server.
type World struct {
	Contract lab.Contract
	// Existing are objects, of whatever namespaces.
	Existing []*unstructured.Unstructured
	// Machines is how many virtual machines exist besides those in Existing.
	Machines int
	// Limit is the cap.
	Limit int
}

// Referents looks the references up among the existing objects.
func (w *World) Referents(_ context.Context, namespace string, wanted []policy.Reference) (map[policy.Reference]policy.Referent, error) {
	found := make(map[policy.Reference]policy.Referent, len(wanted))
	for _, reference := range wanted {
		found[reference] = policy.Referent{}
		for _, object := range w.Existing {
			if object.GetKind() == string(reference.Kind) && object.GetName() == reference.Name && object.GetNamespace() == namespace {
				found[reference] = policy.Referent{Exists: true, UID: object.GetUID(), Labels: object.GetLabels()}
			}
		}
	}
	return found, nil
}

// Lead is the first existing virtual machine of the session.
func (w *World) Lead(_ context.Context, namespace, environment, session string) (*metav1.OwnerReference, error) {
	for _, object := range w.machines() {
		labels := object.GetLabels()
		if object.GetNamespace() == namespace && labels[w.Contract.Labels.Session] == session && labels[w.Contract.Labels.Environment] == environment {
			return &metav1.OwnerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}, nil
		}
	}
	return nil, nil
}

// Decide counts the existing virtual machines; each that is granted exists for the next.
func (w *World) Decide(_ context.Context, claim ledger.Claim) (ledger.Verdict, error) {
	used := w.Machines + len(w.machines())
	exists := slices.ContainsFunc(w.machines(), func(object *unstructured.Unstructured) bool { return object.GetName() == claim.Name })
	if exists || used < w.Limit {
		return ledger.Verdict{Granted: true}, nil
	}
	return ledger.Verdict{
		Shortages: []ledger.Shortage{{Scope: ledger.Namespace, Limit: int64(w.Limit), Used: int64(used), Asked: 1}},
		Tally:     ledger.Tally{Limits: ledger.Limits{VMs: w.Limit}, Total: ledger.Share{Used: used}},
	}, nil
}

// machines are those of the VM namespace: the only ones that take a place.
func (w *World) machines() []*unstructured.Unstructured {
	var machines []*unstructured.Unstructured
	for _, object := range w.Existing {
		if object.GetKind() == string(policy.VirtualMachine) && object.GetNamespace() == w.Contract.VMNamespace {
			machines = append(machines, object)
		}
	}
	return machines
}
