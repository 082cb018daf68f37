package launcher

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

const (
	mebibyte = int64(1) << 20

	// componentsOverhead is launcher-monitor 25, launcher 100, virtlogd 25, virtqemud 40 and QEMU 30.
	componentsOverhead = 220 * mebibyte
	// perVCPUOverhead is also that of the one IO thread that every instance has.
	perVCPUOverhead        = 8 * mebibyte
	graphicsOverhead       = 32 * mebibyte
	arm64FirmwareOverhead  = 128 * mebibyte
	passthroughOverhead    = 1024 * mebibyte
	downwardMetricOverhead = 1 * mebibyte
	execProbesOverhead     = 100 * mebibyte
	execProbeOverhead      = 10 * mebibyte
	encryptedOverhead      = 256 * mebibyte
	tpmOverhead            = 53 * mebibyte
	guaranteedOverhead     = 100 * mebibyte
	passtOverhead          = 250 * mebibyte

	// pageTableShare is one byte of page tables for so many bytes of requested memory.
	pageTableShare = 512
)

// memoryOverhead is what the launcher needs besides the guest's memory.
func memoryOverhead(instance *kubevirtv1.VirtualMachineInstance, additionalRatio float64) resource.Quantity {
	spec := &instance.Spec
	pageTables := spec.Domain.Resources.Requests.Memory().ScaledValue(resource.Kilo) * 1000 / pageTableShare
	bytes := pageTables + componentsOverhead + perVCPUOverhead*(max(vCPUs(spec.Domain.CPU), 1)+1)
	for _, part := range []struct {
		bytes   int64
		applies bool
	}{
		{graphicsOverhead, isOrUnset(spec.Domain.Devices.AutoattachGraphicsDevice)},
		{arm64FirmwareOverhead, spec.Architecture == "arm64"},
		{passthroughOverhead, passesDevicesThrough(spec)},
		{downwardMetricOverhead, hasVolume(spec, func(v kubevirtv1.Volume) bool { return v.DownwardMetrics != nil })},
		{execProbeOverhead, executes(spec.LivenessProbe)},
		{execProbeOverhead, executes(spec.ReadinessProbe)},
		{execProbesOverhead, executes(spec.LivenessProbe) || executes(spec.ReadinessProbe)},
		{encryptedOverhead, encrypted(spec.Domain.LaunchSecurity)},
		{tpmOverhead, spec.Domain.Devices.TPM != nil && isOrUnset(spec.Domain.Devices.TPM.Enabled)},
		{guaranteedOverhead, guaranteed(instance)},
	} {
		if part.applies {
			bytes += part.bytes
		}
	}
	overhead := *resource.NewQuantity(bytes, resource.BinarySI)
	if memory := spec.Domain.Memory; memory != nil && memory.ReservedOverhead != nil && memory.ReservedOverhead.AddedOverhead != nil {
		overhead.Add(*memory.ReservedOverhead.AddedOverhead)
	}
	if additionalRatio != 0 {
		overhead.Add(*resource.NewScaledQuantity(int64(float64(overhead.ScaledValue(resource.Kilo))*(additionalRatio-1)), resource.Kilo))
	}
	// The network's part is not multiplied.
	if usesPasst(spec) {
		overhead.Add(*resource.NewQuantity(passtOverhead, resource.BinarySI))
	}
	return overhead
}

func isOrUnset(value *bool) bool { return value == nil || *value }

// guaranteed tells whether the Pod is to have the quality of service Guaranteed: then every container's requests are its limits.
func guaranteed(instance *kubevirtv1.VirtualMachineInstance) bool {
	return instance.IsCPUDedicated() || instance.WantsToHaveQOSGuaranteed()
}

// passesDevicesThrough tells whether all guest memory is locked for direct memory access, with room for the devices' own.
func passesDevicesThrough(spec *kubevirtv1.VirtualMachineInstanceSpec) bool {
	if len(spec.Domain.Devices.GPUs) > 0 || len(spec.Domain.Devices.HostDevices) > 0 {
		return true
	}
	for _, network := range spec.Domain.Devices.Interfaces {
		if network.SRIOV != nil {
			return true
		}
	}
	return false
}

func usesPasst(spec *kubevirtv1.VirtualMachineInstanceSpec) bool {
	for _, network := range spec.Domain.Devices.Interfaces {
		if network.PasstBinding != nil {
			return true
		}
	}
	return false
}

func hasVolume(spec *kubevirtv1.VirtualMachineInstanceSpec, is func(kubevirtv1.Volume) bool) bool {
	return slices.ContainsFunc(spec.Volumes, is)
}

func executes(probe *kubevirtv1.Probe) bool { return probe != nil && probe.Exec != nil }

func encrypted(security *kubevirtv1.LaunchSecurity) bool {
	return security != nil && (security.SEV != nil || security.SNP != nil)
}
