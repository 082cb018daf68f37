package policy

// Kind is what kind of object a request is about, or an object refers to.
type Kind string

// The kinds that are judged.
const (
	VirtualMachine                   Kind = "VirtualMachine"
	VirtualMachineInstance           Kind = "VirtualMachineInstance"
	VirtualMachineInstanceReplicaSet Kind = "VirtualMachineInstanceReplicaSet"
	VirtualMachinePool               Kind = "VirtualMachinePool"
	Secret                           Kind = "Secret"
	Service                          Kind = "Service"
	NetworkPolicy                    Kind = "NetworkPolicy"
	Pod                              Kind = "Pod"
	PersistentVolumeClaim            Kind = "PersistentVolumeClaim"
)

// DataVolume is a kind that objects refer to and that is not judged itself.
const DataVolume Kind = "DataVolume"

// resources are the kinds' resources in kube-apiserver's URLs.
var resources = map[string]Kind{
	"virtualmachines":                   VirtualMachine,
	"virtualmachineinstances":           VirtualMachineInstance,
	"virtualmachineinstancereplicasets": VirtualMachineInstanceReplicaSet,
	"virtualmachinepools":               VirtualMachinePool,
	"secrets":                           Secret,
	"services":                          Service,
	"networkpolicies":                   NetworkPolicy,
	"pods":                              Pod,
	"persistentvolumeclaims":            PersistentVolumeClaim,
}

// KindOf gives the kind of a resource as kube-apiserver's URLs and its audit log name it; empty for one that is not judged.
func KindOf(resource string) Kind { return resources[resource] }

// Judged tells whether objects of the kind are judged.
func Judged(kind Kind) bool {
	for _, judged := range resources {
		if judged == kind {
			return true
		}
	}
	return false
}
