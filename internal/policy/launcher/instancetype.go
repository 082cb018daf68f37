package launcher

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// Apply puts an instance type into the spec of an instance, as far as it changes the requests. KubeVirt refuses a virtual machine
// that sets the same fields itself; here the instance type's values stand.
func Apply(instanceType *instancetypev1beta1.VirtualMachineInstancetypeSpec, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	domain := &spec.Domain
	if domain.CPU == nil {
		domain.CPU = &kubevirtv1.CPU{}
	}
	// How a preference arranges the virtual CPUs does not change their number.
	domain.CPU.Sockets, domain.CPU.Cores, domain.CPU.Threads = instanceType.CPU.Guest, 1, 1
	if dedicated := instanceType.CPU.DedicatedCPUPlacement; dedicated != nil {
		domain.CPU.DedicatedCPUPlacement = *dedicated
	}
	if isolate := instanceType.CPU.IsolateEmulatorThread; isolate != nil {
		domain.CPU.IsolateEmulatorThread = *isolate
	}
	applyMemory(instanceType.Memory, domain)
	if instanceType.IOThreads != nil {
		domain.IOThreads = instanceType.IOThreads.DeepCopy()
	}
	if instanceType.IOThreadsPolicy != nil {
		domain.IOThreadsPolicy = new(*instanceType.IOThreadsPolicy)
	}
	if instanceType.LaunchSecurity != nil {
		domain.LaunchSecurity = instanceType.LaunchSecurity.DeepCopy()
	}
	if len(instanceType.GPUs) > 0 {
		domain.Devices.GPUs = instanceType.GPUs
	}
	if len(instanceType.HostDevices) > 0 {
		domain.Devices.HostDevices = instanceType.HostDevices
	}
}

func applyMemory(memory instancetypev1beta1.MemoryInstancetype, domain *kubevirtv1.DomainSpec) {
	if domain.Memory == nil {
		domain.Memory = &kubevirtv1.Memory{}
	}
	domain.Memory.Guest = new(memory.Guest.DeepCopy())
	if memory.Hugepages != nil {
		domain.Memory.Hugepages = memory.Hugepages.DeepCopy()
	}
	if memory.OvercommitPercent > 0 {
		if domain.Resources.Requests == nil {
			domain.Resources.Requests = corev1.ResourceList{}
		}
		// The same single precision as in KubeVirt.
		requested := int64(float32(memory.Guest.Value()) * (1 - float32(memory.OvercommitPercent)/100))
		domain.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(requested, memory.Guest.Format)
	}
}

// Prefer counts a preference at the most that it can add, so that it need not be read: a TPM. What else a preference sets
// lowers the requests, or does not change them.
func Prefer(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	if spec.Domain.Devices.TPM == nil {
		spec.Domain.Devices.TPM = &kubevirtv1.TPMDevice{}
	}
}
