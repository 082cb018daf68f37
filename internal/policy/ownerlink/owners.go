// Package ownerlink links what belongs to a session to its virtual machines, so that the garbage collector takes it with them.
// A cloud-init Secret is created before its virtual machine, and the backend may not patch it afterwards: without this the link
// never comes to be, and Secrets outlive their virtual machines by weeks.
package ownerlink

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// link is the ownerReference to a virtual machine: not as controller, which there can be only one of, and without
// blockOwnerDeletion, which would hold up the machine's own deletion.
func link(machine *kubevirtv1.VirtualMachine) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: kubevirtv1.VirtualMachineGroupVersionKind.GroupVersion().String(),
		Kind:       kubevirtv1.VirtualMachineGroupVersionKind.Kind,
		Name:       machine.Name,
		UID:        machine.UID,
	}
}

// linked gives the ownerReferences that an object should have: those that it has, as others wrote them, with a link to each of
// the machines. A link to a machine of the same name under another UID, as a restored backup brings one, is replaced: left
// alone, the garbage collector would delete the object. It reports false where nothing has to change.
func linked(present []metav1.OwnerReference, machines []*kubevirtv1.VirtualMachine) ([]metav1.OwnerReference, bool) {
	wanted := slices.Clone(present)
	changed := false
	for _, machine := range machines {
		owner := link(machine)
		i := slices.IndexFunc(wanted, func(o metav1.OwnerReference) bool { return sameMachine(o, owner) })
		switch {
		case i < 0:
			wanted = append(wanted, owner)
		case wanted[i].UID != owner.UID:
			wanted[i] = owner
		default:
			continue
		}
		changed = true
	}
	return wanted, changed
}

// sameMachine tells whether two references name the same virtual machine, whatever the version and the UID.
func sameMachine(a, b metav1.OwnerReference) bool {
	group := func(apiVersion string) string {
		version, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return ""
		}
		return version.Group
	}
	return a.Kind == b.Kind && a.Name == b.Name && group(a.APIVersion) == group(b.APIVersion)
}

// byAge orders a session's virtual machines, the lead first. Of two that were created within the same second the name decides: a
// member's extends the lead's.
func byAge(a, b *kubevirtv1.VirtualMachine) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
