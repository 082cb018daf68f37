package reap

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Kind is a kind of lab object that a pass may delete. PersistentVolumeClaims are none: nobody deletes a golden one.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	// Machine tells whether objects of this kind hold the memory of a student's machine.
	Machine bool
	// Whole tells whether all objects of this kind are listed, and not only those that carry a session.
	Whole bool
}

// The kinds, in the order in which a session's objects are deleted: what holds memory first, and the network last, so that a
// machine is never without its policy.
var (
	VirtualMachine         = Kind{Name: "VirtualMachine", Resource: kubevirtv1.GroupVersion.WithResource("virtualmachines"), Machine: true, Whole: true}
	VirtualMachineInstance = Kind{Name: "VirtualMachineInstance", Resource: kubevirtv1.GroupVersion.WithResource("virtualmachineinstances"), Machine: true, Whole: true}
	Pod                    = Kind{Name: "Pod", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Machine: true}
	Secret                 = Kind{Name: "Secret", Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Whole: true}
	Service                = Kind{Name: "Service", Resource: corev1.SchemeGroupVersion.WithResource("services")}
	NetworkPolicy          = Kind{Name: "NetworkPolicy", Resource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies")}
)
