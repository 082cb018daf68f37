package policy

import (
	"context"
	"encoding/json"
	"fmt"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// incalculable is an error of the object's own: nobody knows what it would request. Why is the requester's to read, the cause is
// for the log.
type incalculable struct {
	why   string
	cause error
}

func (i *incalculable) Error() string { return i.cause.Error() }

func (i *incalculable) Unwrap() error { return i.cause }

// need is what the object under review will request; nothing where no budget is set.
func (v *Validator) need(ctx context.Context, f Facts) (ledger.Need, error) {
	if v.Requests == nil {
		return ledger.Need{}, nil
	}
	machine, err := f.New.machine()
	if err != nil {
		return ledger.Need{}, &incalculable{why: err.Error(), cause: fmt.Errorf("reading the virtual machine: %w", err)}
	}
	need, err := v.Requests.OfMachine(ctx, machine)
	if err != nil {
		return ledger.Need{}, &incalculable{why: "its instance type cannot be read", cause: err}
	}
	return need, nil
}

// machine is the virtual machine in KubeVirt's own type, as far as its launcher Pod follows from it.
func (o *Object) machine() (*kubevirtv1.VirtualMachine, error) {
	machine := &kubevirtv1.VirtualMachine{}
	if o.HasTemplate {
		machine.Spec.Template = &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
		machine.Spec.Template.ObjectMeta.Annotations = templateOf(o).Annotations
	}
	for _, part := range []struct {
		raw  []byte
		into any
	}{
		{o.Launch.Instancetype, &machine.Spec.Instancetype},
		{o.Launch.Preference, &machine.Spec.Preference},
		{o.Launch.InstancetypeRef, &machine.Status.InstancetypeRef},
	} {
		if len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return nil, err
		}
	}
	if len(o.Launch.Spec) > 0 {
		// By KubeVirt's own reading, which takes a field in another case for the field: what it will start is what counts.
		if err := machine.Spec.Template.Spec.UnmarshalJSON(o.Launch.Spec); err != nil {
			return nil, err
		}
	}
	return machine, nil
}
