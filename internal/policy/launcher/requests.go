// Package launcher calculates what the launcher Pod of a virtual machine will request, as KubeVirt itself does it: the API
// server's ResourceQuota counts exactly this, and refuses the Pod where it does not fit, long after the virtual machine was
// accepted.
//
// The calculation follows kubevirt.io/kubevirt v1.8.2: the defaults of pkg/defaults/defaults.go, the memory of
// pkg/hypervisor/kvm/hypervisorbackend.go (GetMemoryOverhead) and the requests of
// pkg/virt-controller/services/renderresources.go. That module is too large to import; the tests compare with its answers for
// several hundred shapes, which test/kubevirt/vectors writes anew.
//
// Not counted, since nothing in the virtual machine tells: hook sidecars, network binding plugins that declare an overhead of
// their own, a RuntimeClass's overhead, requests that a LimitRange or another webhook adds to the Pod.
package launcher

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Cluster is the part of KubeVirt's own configuration that changes what a launcher requests.
type Cluster struct {
	// CPUAllocationRatio is how many virtual CPUs share one that is requested.
	CPUAllocationRatio int
	// MemoryOvercommitPercent is the guest's memory in percent of what is requested for it.
	MemoryOvercommitPercent int
	// AdditionalOverheadRatio multiplies the overhead; zero and 1 leave it.
	AdditionalOverheadRatio float64
	// SerialConsoleLogDisabled tells that launchers have no container that logs the serial console.
	SerialConsoleLogDisabled bool
}

// Requests is what one launcher Pod requests.
type Requests struct {
	CPU    resource.Quantity
	Memory resource.Quantity
}

// Of gives the requests of the launcher that runs an instance with this spec. Annotations are the instance's. An instance type
// has to be applied before; see Apply.
func Of(spec *kubevirtv1.VirtualMachineInstanceSpec, annotations map[string]string, cluster Cluster) Requests {
	instance := &kubevirtv1.VirtualMachineInstance{Spec: *spec.DeepCopy()}
	instance.Annotations = annotations
	setDefaults(&instance.Spec)
	compute := Requests{CPU: computeCPU(instance, cluster), Memory: computeMemory(instance, cluster)}
	return podRequests(compute, containersBeside(instance, cluster))
}

func computeCPU(instance *kubevirtv1.VirtualMachineInstance, cluster Cluster) resource.Quantity {
	processors := vCPUs(instance.Spec.Domain.CPU) + ioThreads(instance)
	if !instance.IsCPUDedicated() {
		if requested, found := instance.Spec.Domain.Resources.Requests[corev1.ResourceCPU]; found {
			return requested
		}
		return shared(processors, cluster.CPUAllocationRatio)
	}
	if instance.Spec.Domain.CPU.IsolateEmulatorThread {
		// The emulator thread gets a CPU of its own, and a second one where that makes their number even.
		_, evenly := instance.Annotations[kubevirtv1.EmulatorThreadCompleteToEvenParity]
		if evenly && (processors+supplementalIOThreads(instance))%2 == 0 {
			processors++
		}
		processors++
	}
	return *resource.NewQuantity(processors, resource.DecimalSI)
}

// computeMemory is the guest's memory, or what is requested for it, with the overhead. Huge pages are a resource of their own,
// and no memory to a ResourceQuota.
func computeMemory(instance *kubevirtv1.VirtualMachineInstance, cluster Cluster) resource.Quantity {
	domain := &instance.Spec.Domain
	requested := memoryRequest(domain, cluster.MemoryOvercommitPercent)
	overhead := memoryOverhead(instance, cluster.AdditionalOverheadRatio)
	if domain.Memory != nil && domain.Memory.Hugepages != nil {
		beyondGuest := resource.Quantity{}
		if guest := domain.Memory.Guest; guest != nil && requested.Cmp(*guest) > 0 {
			beyondGuest = requested
			beyondGuest.Sub(*guest)
		}
		beyondGuest.Add(overhead)
		return beyondGuest
	}
	if !domain.Resources.OvercommitGuestOverhead {
		requested.Add(overhead)
	}
	return requested
}

func memoryRequest(domain *kubevirtv1.DomainSpec, overcommitPercent int) resource.Quantity {
	request, requested := domain.Resources.Requests[corev1.ResourceMemory]
	if !request.IsZero() {
		return request
	}
	if limit := domain.Resources.Limits[corev1.ResourceMemory]; !limit.IsZero() {
		return limit
	}
	// A request of zero that somebody wrote is no missing one.
	if requested || domain.Memory == nil || domain.Memory.Guest == nil {
		return request
	}
	if overcommitPercent == 100 {
		return *domain.Memory.Guest
	}
	return *resource.NewQuantity(domain.Memory.Guest.Value()*100/int64(overcommitPercent), domain.Memory.Guest.Format)
}
