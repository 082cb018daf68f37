package policy

import (
	corev1 "k8s.io/api/core/v1"
)

// announce makes an Event of a denial, where the object is or would be, so that kubectl describe tells of it. The recorder bounds
// how many there are of one object. A dry run leaves no trace.
func (v *Validator) announce(f Facts, decision Decision) {
	if f.DryRun {
		return
	}
	object := &corev1.ObjectReference{Kind: string(f.Kind), Namespace: f.Namespace, Name: f.Name, UID: f.UID}
	if f.Kind == VirtualMachine {
		object.APIVersion = "kubevirt.io/v1"
	}
	v.Events.Eventf(object, corev1.EventTypeWarning, decision.Codes()[0], "%s of %s denied to %s: %s",
		f.Operation, f.Name, f.Requester.Username, decision.Message(Violation.Message))
}
