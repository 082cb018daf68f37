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
	verdict := "denied"
	if decision.ReportOnly {
		verdict = "would be denied"
	}
	v.Events.Eventf(object, corev1.EventTypeWarning, decision.Codes()[0], "%s of %s %s to %s: %s",
		f.Operation, f.Name, verdict, f.Requester.Username, decision.Message(Violation.Message))
}
