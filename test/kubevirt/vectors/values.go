package main

import (
	"slices"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

func sort(all []shape) {
	slices.SortFunc(all, func(a, b shape) int { return strings.Compare(a.Name, b.Name) })
}

func pointer[T any](value T) *T { return &value }

var processors = map[string]change{
	"nothing":                      both(),
	"2 cores":                      cpu(v1.CPU{Cores: 2}),
	"3 sockets":                    cpu(v1.CPU{Sockets: 3}),
	"2 threads":                    cpu(v1.CPU{Threads: 2}),
	"2x3x2":                        cpu(v1.CPU{Cores: 2, Sockets: 3, Threads: 2}),
	"32 cores":                     cpu(v1.CPU{Cores: 32}),
	"a model alone":                cpu(v1.CPU{Model: "host-model"}),
	"cpu request 500m":             request(k8sv1.ResourceCPU, "500m"),
	"cpu request 1m":               request(k8sv1.ResourceCPU, "1m"),
	"cpu request 2500m":            request(k8sv1.ResourceCPU, "2500m"),
	"cpu request 0":                request(k8sv1.ResourceCPU, "0"),
	"cpu limit 3":                  limit(k8sv1.ResourceCPU, "3"),
	"cpu limit 3, request 1":       both(limit(k8sv1.ResourceCPU, "3"), request(k8sv1.ResourceCPU, "1")),
	"cpu request = limit 2":        both(limit(k8sv1.ResourceCPU, "2"), request(k8sv1.ResourceCPU, "2")),
	"2 cores, cpu request 2":       both(cpu(v1.CPU{Cores: 2}), request(k8sv1.ResourceCPU, "2")),
	"2 dedicated cores":            cpu(v1.CPU{Cores: 2, DedicatedCPUPlacement: true}),
	"dedicated, cpu limit 2":       both(cpu(v1.CPU{DedicatedCPUPlacement: true}), limit(k8sv1.ResourceCPU, "2")),
	"dedicated, cpu request 2":     both(cpu(v1.CPU{DedicatedCPUPlacement: true}), request(k8sv1.ResourceCPU, "2")),
	"2 dedicated, emulator thread": cpu(v1.CPU{Cores: 2, DedicatedCPUPlacement: true, IsolateEmulatorThread: true}),
	"dedicated, emulator thread, cpu request 3": both(cpu(v1.CPU{DedicatedCPUPlacement: true, IsolateEmulatorThread: true}), request(k8sv1.ResourceCPU, "3")),
	"2 cores, emulator thread":                  cpu(v1.CPU{Cores: 2, IsolateEmulatorThread: true}),
}

var memories = map[string]change{
	"nothing":                       both(),
	"guest 128Mi":                   memory(v1.Memory{Guest: quantity("128Mi")}),
	"guest 1Gi":                     memory(v1.Memory{Guest: quantity("1Gi")}),
	"guest 1500M":                   memory(v1.Memory{Guest: quantity("1500M")}),
	"memory request 128Mi":          request(k8sv1.ResourceMemory, "128Mi"),
	"memory request 1e9":            request(k8sv1.ResourceMemory, "1000000001"),
	"memory request 4Gi, guest 4Gi": both(memory(v1.Memory{Guest: quantity("4Gi")}), request(k8sv1.ResourceMemory, "4Gi")),
	"memory request 1Gi, guest 4Gi": both(memory(v1.Memory{Guest: quantity("4Gi")}), request(k8sv1.ResourceMemory, "1Gi")),
	"memory limit 2Gi":              limit(k8sv1.ResourceMemory, "2Gi"),
	"memory limit 2Gi, guest 1Gi":   both(memory(v1.Memory{Guest: quantity("1Gi")}), limit(k8sv1.ResourceMemory, "2Gi")),
	"memory request 0, limit 2Gi":   both(request(k8sv1.ResourceMemory, "0"), limit(k8sv1.ResourceMemory, "2Gi")),
	"request = limit 1Gi":           both(request(k8sv1.ResourceMemory, "1Gi"), limit(k8sv1.ResourceMemory, "1Gi")),
	"hugepages 2Mi, request 1Gi":    both(memory(v1.Memory{Hugepages: &v1.Hugepages{PageSize: "2Mi"}}), request(k8sv1.ResourceMemory, "1Gi")),
	"hugepages 1Gi alone":           memory(v1.Memory{Hugepages: &v1.Hugepages{PageSize: "1Gi"}}),
	"hugepages 2Mi, guest 1Gi":      memory(v1.Memory{Guest: quantity("1Gi"), Hugepages: &v1.Hugepages{PageSize: "2Mi"}}),
	"hugepages 2Mi, guest 1Gi, request 3Gi": both(
		memory(v1.Memory{Guest: quantity("1Gi"), Hugepages: &v1.Hugepages{PageSize: "2Mi"}}), request(k8sv1.ResourceMemory, "3Gi")),
	"overcommitted guest overhead": both(memory(v1.Memory{Guest: quantity("1Gi")}), request(k8sv1.ResourceMemory, "1Gi"),
		func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Resources.OvercommitGuestOverhead = true }),
	"reserved overhead 300Mi": memory(v1.Memory{Guest: quantity("1Gi"), ReservedOverhead: &v1.ReservedOverhead{AddedOverhead: quantity("300Mi")}}),
}

func containerDisk(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "registry/vm:1"}}}
}

func exec() *v1.Probe {
	return &v1.Probe{Handler: v1.Handler{Exec: &k8sv1.ExecAction{Command: []string{"true"}}}}
}

var extras = map[string]change{
	"no extra":         both(),
	"a container disk": func(s *v1.VirtualMachineInstanceSpec) { s.Volumes = []v1.Volume{containerDisk("root")} },
	"3 container disks": func(s *v1.VirtualMachineInstanceSpec) {
		s.Volumes = []v1.Volume{containerDisk("a"), containerDisk("b"), containerDisk("c")}
	},
	"no graphics":       func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.AutoattachGraphicsDevice = pointer(false) },
	"graphics":          func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.AutoattachGraphicsDevice = pointer(true) },
	"no serial console": func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.AutoattachSerialConsole = pointer(false) },
	"no serial log":     func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.LogSerialConsole = pointer(false) },
	"serial log":        func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.LogSerialConsole = pointer(true) },
	"a TPM":             func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.TPM = &v1.TPMDevice{} },
	"a disabled TPM":    func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Devices.TPM = &v1.TPMDevice{Enabled: pointer(false)} },
	"a GPU": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.Devices.GPUs = []v1.GPU{{Name: "g", DeviceName: "vendor.com/gpu"}}
	},
	"a host device": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.Devices.HostDevices = []v1.HostDevice{{Name: "h", DeviceName: "vendor.com/dev"}}
	},
	"SEV": func(s *v1.VirtualMachineInstanceSpec) { s.Domain.LaunchSecurity = &v1.LaunchSecurity{SEV: &v1.SEV{}} },
	"SEV-SNP": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.LaunchSecurity = &v1.LaunchSecurity{SNP: &v1.SEVSNP{}}
	},
	"a liveness exec":  func(s *v1.VirtualMachineInstanceSpec) { s.LivenessProbe = exec() },
	"both exec probes": func(s *v1.VirtualMachineInstanceSpec) { s.LivenessProbe, s.ReadinessProbe = exec(), exec() },
	"a TCP probe": func(s *v1.VirtualMachineInstanceSpec) {
		s.ReadinessProbe = &v1.Probe{Handler: v1.Handler{TCPSocket: &k8sv1.TCPSocketAction{}}}
	},
	"downward metrics": func(s *v1.VirtualMachineInstanceSpec) {
		s.Volumes = []v1.Volume{{Name: "m", VolumeSource: v1.VolumeSource{DownwardMetrics: &v1.DownwardMetricsVolumeSource{}}}}
	},
	"arm64": func(s *v1.VirtualMachineInstanceSpec) { s.Architecture = "arm64" },
	"IO threads": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.IOThreadsPolicy = pointer(v1.IOThreadsPolicySupplementalPool)
		s.Domain.IOThreads = &v1.DiskIOThreads{SupplementalPoolThreadCount: pointer(uint32(3))}
	},
	"a virtiofs volume": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.Devices.Filesystems = []v1.Filesystem{{Name: "shared", Virtiofs: &v1.FilesystemVirtiofs{}}}
		s.Volumes = []v1.Volume{{Name: "shared", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: k8sv1.LocalObjectReference{Name: "c"}}}}}
	},
	"a kernel boot container": func(s *v1.VirtualMachineInstanceSpec) {
		s.Domain.Firmware = &v1.Firmware{KernelBoot: &v1.KernelBoot{Container: &v1.KernelBootContainer{Image: "registry/kernel:1", KernelPath: "/k"}}}
	},
	"an SR-IOV interface": func(s *v1.VirtualMachineInstanceSpec) {
		s.Networks = []v1.Network{*v1.DefaultPodNetwork()}
		s.Domain.Devices.Interfaces = []v1.Interface{{Name: "default", InterfaceBindingMethod: v1.InterfaceBindingMethod{SRIOV: &v1.InterfaceSRIOV{}}}}
	},
	"a passt interface": func(s *v1.VirtualMachineInstanceSpec) {
		s.Networks = []v1.Network{*v1.DefaultPodNetwork()}
		s.Domain.Devices.Interfaces = []v1.Interface{{Name: "default", InterfaceBindingMethod: v1.InterfaceBindingMethod{PasstBinding: &v1.InterfacePasstBinding{}}}}
	},
}

var clusters = map[string]cluster{
	"ratio 1":                   {CPUAllocationRatio: 1},
	"ratio 3":                   {CPUAllocationRatio: 3},
	"memory overcommit 150":     {MemoryOvercommitPercent: 150},
	"additional overhead 1.5":   {AdditionalOverheadRatio: "1.5"},
	"serial console log is off": {SerialConsoleLogDisabled: true},
}

var instanceTypes = map[string]*instancetypev1beta1.VirtualMachineInstancetypeSpec{
	"small":      {CPU: instancetypev1beta1.CPUInstancetype{Guest: 1}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("2Gi")}},
	"4 vCPU":     {CPU: instancetypev1beta1.CPUInstancetype{Guest: 4}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("8Gi")}},
	"overcommit": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 4}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("8Gi"), OvercommitPercent: 15}},
	"dedicated": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 4, DedicatedCPUPlacement: pointer(true), IsolateEmulatorThread: pointer(true)},
		Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("8Gi")}},
	"hugepages": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 2},
		Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("4Gi"), Hugepages: &v1.Hugepages{PageSize: "1Gi"}}},
	"SEV": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 2}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("4Gi")},
		LaunchSecurity: &v1.LaunchSecurity{SEV: &v1.SEV{}}},
	"GPU": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 2}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("4Gi")},
		GPUs: []v1.GPU{{Name: "g", DeviceName: "vendor.com/gpu"}}},
	"IO threads": {CPU: instancetypev1beta1.CPUInstancetype{Guest: 2}, Memory: instancetypev1beta1.MemoryInstancetype{Guest: *quantity("4Gi")},
		IOThreads: &v1.DiskIOThreads{SupplementalPoolThreadCount: pointer(uint32(2))}},
}
