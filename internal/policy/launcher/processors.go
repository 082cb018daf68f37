package launcher

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// vCPUs multiplies what is set of the topology.
func vCPUs(cpu *kubevirtv1.CPU) int64 {
	product := int64(0)
	for _, factor := range []uint32{cpu.Cores, cpu.Sockets, cpu.Threads} {
		switch {
		case factor == 0:
		case product == 0:
			product = int64(factor)
		default:
			product *= int64(factor)
		}
	}
	return product
}

// ioThreads are CPUs that are requested for disk threads besides those of the guest.
func ioThreads(instance *kubevirtv1.VirtualMachineInstance) int64 {
	threads := instance.Spec.Domain.IOThreads
	if threads == nil || threads.SupplementalPoolThreadCount == nil {
		return 0
	}
	return int64(*threads.SupplementalPoolThreadCount)
}

// supplementalIOThreads are the same, where the policy asks for a pool: KubeVirt adds them a second time to find out whether the
// number of dedicated CPUs is even.
func supplementalIOThreads(instance *kubevirtv1.VirtualMachineInstance) int64 {
	policy := instance.Spec.Domain.IOThreadsPolicy
	if policy == nil || *policy != kubevirtv1.IOThreadsPolicySupplementalPool {
		return 0
	}
	return ioThreads(instance)
}

// shared is what is requested for processors that may be shared. It goes through the same text as in KubeVirt, so that a
// fraction is rounded in the same direction.
func shared(processors int64, ratio int) resource.Quantity {
	value := float64(processors) / float64(ratio)
	text := fmt.Sprintf("%g", value)
	if value < 1 {
		text = fmt.Sprintf("%gm", value*1000)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		// Only a number of processors beyond all bounds is written so that it cannot be read: more than any budget.
		return *resource.NewQuantity(processors, resource.DecimalSI)
	}
	return quantity
}
