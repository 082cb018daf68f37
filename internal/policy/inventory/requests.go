// Package inventory knows what the launcher Pods of the virtual machines request, so that a budget can be counted with no more
// than a list of metadata: the request of an object is a function of its UID and generation, so what was found out once holds,
// and a watch finds out before anybody asks. What is unknown when a decision needs it is read then.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// Requests calculates what a launcher Pod will request.
type Requests struct {
	Cluster       launcher.Cluster
	InstanceTypes *InstanceTypes
}

// OfMachine calculates it for a virtual machine. An error means that its instance type cannot be read.
func (r *Requests) OfMachine(ctx context.Context, machine *kubevirtv1.VirtualMachine) (ledger.Need, error) {
	template := machine.Spec.Template
	if template == nil {
		return ledger.Need{}, nil
	}
	spec := &template.Spec
	if machine.Spec.Instancetype != nil || machine.Spec.Preference != nil {
		// Both are written into the spec, which is the caller's.
		spec = spec.DeepCopy()
	}
	if machine.Spec.Instancetype != nil {
		instanceType, err := r.InstanceTypes.Of(ctx, machine)
		if err != nil {
			return ledger.Need{}, err
		}
		launcher.Apply(instanceType, spec)
	}
	if machine.Spec.Preference != nil {
		launcher.Prefer(spec)
	}
	return r.need(spec, template.ObjectMeta.Annotations), nil
}

// OfInstance calculates it for an instance, into which KubeVirt has put the instance type already.
func (r *Requests) OfInstance(instance *kubevirtv1.VirtualMachineInstance) ledger.Need {
	return r.need(&instance.Spec, instance.Annotations)
}

func (r *Requests) need(spec *kubevirtv1.VirtualMachineInstanceSpec, annotations map[string]string) ledger.Need {
	requests := launcher.Of(spec, annotations, r.Cluster)
	return ledger.Need{MilliCPU: requests.CPU.MilliValue(), Memory: requests.Memory.Value()}
}

// decode reads an object as its typed form.
func decode(object *unstructured.Unstructured, into any) error {
	content, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
