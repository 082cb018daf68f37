package launcher

import (
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Each helper container requests little, and its limits where the Pod is to be Guaranteed.
var (
	consoleLog = helper{Requests{milli(5), megabytes(35)}, Requests{milli(15), megabytes(60)}}
	disk       = helper{Requests{milli(1), megabytes(1)}, Requests{milli(10), megabytes(40)}}
	diskCopier = helper{Requests{milli(10), megabytes(1)}, Requests{milli(10), megabytes(40)}}
	virtiofs   = helper{Requests{milli(10), megabytes(1)}, Requests{milli(100), megabytes(80)}}
)

type helper struct{ requests, limits Requests }

func milli(value int64) resource.Quantity {
	return *resource.NewMilliQuantity(value, resource.DecimalSI)
}

func megabytes(value int64) resource.Quantity {
	return *resource.NewScaledQuantity(value, resource.Mega)
}

// beside are the containers of a launcher besides the one that runs the guest.
type beside struct {
	containers []Requests
	// sidecars start before the init containers and run on.
	sidecars []Requests
	inits    []Requests
}

func containersBeside(instance *kubevirtv1.VirtualMachineInstance, cluster Cluster) beside {
	requestsOf := func(h helper) Requests {
		if guaranteed(instance) {
			return h.limits
		}
		return h.requests
	}
	var b beside
	if logsSerialConsole(&instance.Spec, cluster) {
		b.sidecars = append(b.sidecars, requestsOf(consoleLog))
	}
	for range containerDisks(&instance.Spec) {
		b.containers = append(b.containers, requestsOf(disk))
	}
	if len(b.containers) > 0 {
		b.inits = append(b.inits, requestsOf(diskCopier), requestsOf(disk))
	}
	for range sharedVolumes(&instance.Spec) {
		b.containers = append(b.containers, requestsOf(virtiofs))
	}
	return b
}

// containerDisks counts the disks that come as images: each is served by a container of its own. A kernel is one too.
func containerDisks(spec *kubevirtv1.VirtualMachineInstanceSpec) int {
	count := 0
	for _, volume := range spec.Volumes {
		if volume.ContainerDisk != nil {
			count++
		}
	}
	if firmware := spec.Domain.Firmware; firmware != nil && firmware.KernelBoot != nil && firmware.KernelBoot.Container != nil &&
		firmware.KernelBoot.Container.Image != "" {
		count++
	}
	return count
}

// sharedVolumes counts the volumes that the guest mounts as a file system: each is served by a container of its own.
func sharedVolumes(spec *kubevirtv1.VirtualMachineInstanceSpec) int {
	shared := map[string]bool{}
	for _, filesystem := range spec.Domain.Devices.Filesystems {
		shared[filesystem.Name] = true
	}
	count := 0
	for _, volume := range spec.Volumes {
		if shared[volume.Name] && volume.ContainerPath == nil {
			count++
		}
	}
	return count
}

func logsSerialConsole(spec *kubevirtv1.VirtualMachineInstanceSpec, cluster Cluster) bool {
	if !isOrUnset(spec.Domain.Devices.AutoattachSerialConsole) {
		return false
	}
	if logs := spec.Domain.Devices.LogSerialConsole; logs != nil {
		return *logs
	}
	return !cluster.SerialConsoleLogDisabled
}

// podRequests adds up what scheduler and quota count: all containers that run at the same time, or, where that is more, an init
// container with the sidecars that run already.
func podRequests(compute Requests, b beside) Requests {
	var sidecars Requests
	for _, sidecar := range b.sidecars {
		sidecars.add(sidecar)
	}
	total := compute.copied()
	total.add(sidecars)
	for _, container := range b.containers {
		total.add(container)
	}
	for _, init := range b.inits {
		init = init.copied()
		init.add(sidecars)
		total.raise(init)
	}
	return total
}

func (r *Requests) copied() Requests {
	return Requests{CPU: r.CPU.DeepCopy(), Memory: r.Memory.DeepCopy()}
}

func (r *Requests) add(other Requests) {
	r.CPU.Add(other.CPU)
	r.Memory.Add(other.Memory)
}

func (r *Requests) raise(other Requests) {
	if other.CPU.Cmp(r.CPU) > 0 {
		r.CPU = other.CPU
	}
	if other.Memory.Cmp(r.Memory) > 0 {
		r.Memory = other.Memory
	}
}
