package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// isMachine tells whether an ownerReference names a virtual machine.
func isMachine(owner metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == "kubevirt.io" && owner.Kind == string(VirtualMachine)
}

// machineOwner is an ownerReference to a virtual machine: neither the controller, which a Secret with two machines could not
// have, nor in the way of the machine's deletion.
func machineOwner(name string, uid types.UID) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: string(VirtualMachine), Name: name, UID: uid}
}

// ownerReferences denies an owner that does not exist under its UID (OwnerMissing): the garbage collector would delete the
// object within milliseconds; and one of another session or environment (OwnerForeign): the object would go with a stranger's.
// A lab object's owner is a virtual machine of its own session and nothing else.
func ownerReferences(contract lab.Contract, f Facts) []Violation {
	if f.New == nil || f.Requester.Kind == lab.Admin {
		return nil
	}
	before := map[string]bool{}
	for _, owner := range f.oldMetadata().OwnerReferences {
		before[string(owner.UID)] = true
	}
	var violations []Violation
	for i, owner := range f.New.Metadata.OwnerReferences {
		if before[string(owner.UID)] {
			continue
		}
		path := field.NewPath("metadata", "ownerReferences").Index(i)
		if violation := judgeOwner(contract, f, owner, path); violation != nil {
			violations = append(violations, *violation)
		}
	}
	return violations
}

func judgeOwner(contract lab.Contract, f Facts, owner metav1.OwnerReference, path *field.Path) *Violation {
	if !isMachine(owner) {
		return &Violation{
			Code:   OwnerForeign,
			Field:  path,
			Found:  fmt.Sprintf("the owner is %s %q", owner.Kind, owner.Name),
			Remedy: "only a virtual machine of the same session may own a lab object; leave the ownerReference out",
		}
	}
	found, lookedUp := f.Referents[Reference{VirtualMachine, owner.Name}]
	if !lookedUp {
		return nil
	}
	if !found.Exists || found.UID != owner.UID {
		return &Violation{
			Code:   OwnerMissing,
			Field:  path.Child("uid"),
			Found:  fmt.Sprintf("virtual machine %q with the UID %q does not exist; the garbage collector would delete the object at once", owner.Name, owner.UID),
			Remedy: "read the owner's UID from the API server, or leave the ownerReference out",
		}
	}
	if theirs := stranger(contract, f, found); theirs != "" {
		return &Violation{
			Code:   OwnerForeign,
			Field:  path,
			Found:  fmt.Sprintf("virtual machine %q belongs to %s", owner.Name, theirs),
			Remedy: "only a virtual machine of the same session may own a lab object; leave the ownerReference out",
		}
	}
	return nil
}
