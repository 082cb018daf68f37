package launcher

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// setDefaults fills in what KubeVirt's webhook for instances fills in, as far as it changes the requests. On what KubeVirt has
// filled in already it changes nothing.
func setDefaults(spec *kubevirtv1.VirtualMachineInstanceSpec) {
	domain := &spec.Domain
	if limit := domain.Resources.Limits[corev1.ResourceCPU]; !limit.IsZero() && domain.Resources.Requests.Cpu().IsZero() {
		if domain.Resources.Requests == nil {
			domain.Resources.Requests = corev1.ResourceList{}
		}
		domain.Resources.Requests[corev1.ResourceCPU] = limit
	}
	setGuestMemory(domain)
	setTopology(domain)
}

func setGuestMemory(domain *kubevirtv1.DomainSpec) {
	if domain.Memory == nil {
		domain.Memory = &kubevirtv1.Memory{}
	}
	if domain.Memory.Guest != nil {
		return
	}
	switch {
	case !domain.Resources.Requests.Memory().IsZero():
		domain.Memory.Guest = domain.Resources.Requests.Memory()
	case !domain.Resources.Limits.Memory().IsZero():
		domain.Memory.Guest = domain.Resources.Limits.Memory()
	case domain.Memory.Hugepages != nil:
		if size, err := resource.ParseQuantity(domain.Memory.Hugepages.PageSize); err == nil {
			domain.Memory.Guest = &size
		}
	}
}

// setTopology makes as many sockets as CPUs are limited or requested, where no topology is given.
func setTopology(domain *kubevirtv1.DomainSpec) {
	if domain.CPU == nil {
		domain.CPU = &kubevirtv1.CPU{}
	}
	if domain.CPU.Cores != 0 || domain.CPU.Sockets != 0 || domain.CPU.Threads != 0 {
		return
	}
	sockets := uint32(1)
	if limit, found := domain.Resources.Limits[corev1.ResourceCPU]; found {
		sockets = whole(limit)
	} else if request, found := domain.Resources.Requests[corev1.ResourceCPU]; found {
		sockets = whole(request)
	}
	domain.CPU.Sockets, domain.CPU.Cores, domain.CPU.Threads = sockets, 1, 1
}

// whole rounds a number of CPUs up. KubeVirt cuts a number that does not fit into its field; we take the largest.
func whole(quantity resource.Quantity) uint32 {
	const largest = 1<<32 - 1
	return uint32(min(max(quantity.Value(), 0), largest))
}
