// vectors asks KubeVirt's own code what the launcher Pods of many virtual machines request, and writes the answers as JSON. The
// tests of internal/demand compare their own calculation with it.
//
// Each shape goes the way it goes in a cluster: virt-controller makes the instance from the virtual machine and applies the
// instance type, virt-api's webhook fills in the defaults, virt-controller renders the launcher Pod. What a Pod requests is
// counted as the scheduler and the ResourceQuota count it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sfield "k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	podresources "k8s.io/component-helpers/resource"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/log"
	"kubevirt.io/kubevirt/pkg/instancetype/apply"
	"kubevirt.io/kubevirt/pkg/network/resources"
	"kubevirt.io/kubevirt/pkg/testutils"
	"kubevirt.io/kubevirt/pkg/virt-api/webhooks/mutating-webhook/mutators"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-controller/services"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/vm"
)

// vector is one shape with KubeVirt's answer.
type vector struct {
	shape
	// MilliCPU and Memory (bytes) are what the launcher Pod requests.
	MilliCPU int64 `json:"milliCPU"`
	Memory   int64 `json:"memory"`
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors OUTPUT [MANIFEST...]")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func write(path string, manifests []string) error {
	log.InitializeLogging("vectors")
	if err := log.Log.SetVerbosityLevel(0); err != nil {
		return err
	}
	shapes, err := shapes(manifests)
	if err != nil {
		return err
	}
	vectors := make([]vector, 0, len(shapes))
	for _, s := range shapes {
		v, err := ask(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		vectors = append(vectors, v)
	}
	// One vector a line, so that a change of one shows as one line.
	var content bytes.Buffer
	for i, v := range vectors {
		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		content.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		content.Write(line)
	}
	content.WriteString("\n]\n")
	return os.WriteFile(path, content.Bytes(), 0o644)
}

func ask(s shape) (vector, error) {
	config := clusterConfig(s.Cluster)
	instance := vm.SetupVMIFromVM(&v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "lab-a0000000", Namespace: "lab-vms"},
		Spec: v1.VirtualMachineSpec{Template: &v1.VirtualMachineInstanceTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: s.Annotations},
			Spec:       *s.Spec.DeepCopy(),
		}},
	})
	if s.InstanceType != nil {
		conflicts := apply.NewVMIApplier().ApplyToVMI(k8sfield.NewPath("spec"), s.InstanceType, nil, &instance.Spec, &instance.ObjectMeta)
		if len(conflicts) > 0 {
			return vector{}, fmt.Errorf("the instance type conflicts: %s", conflicts)
		}
	}
	if err := mutators.ApplyNewVMIMutations(instance, config); err != nil {
		return vector{}, err
	}
	pod, err := template(config, claimsOf(instance)).RenderLaunchManifest(instance)
	if err != nil {
		return vector{}, err
	}
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{})
	return vector{shape: s, MilliCPU: requests.Cpu().MilliValue(), Memory: requests.Memory().Value()}, nil
}

func clusterConfig(c cluster) *virtconfig.ClusterConfig {
	kubevirt := &v1.KubeVirt{
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt", Namespace: "kubevirt"},
		Spec: v1.KubeVirtSpec{Configuration: v1.KubeVirtConfiguration{
			DeveloperConfiguration: &v1.DeveloperConfiguration{CPUAllocationRatio: c.CPUAllocationRatio, MemoryOvercommit: c.MemoryOvercommitPercent},
		}},
		Status: v1.KubeVirtStatus{Phase: v1.KubeVirtPhaseDeployed, DefaultArchitecture: "amd64"},
	}
	if c.AdditionalOverheadRatio != "" {
		kubevirt.Spec.Configuration.AdditionalGuestMemoryOverheadRatio = &c.AdditionalOverheadRatio
	}
	if c.SerialConsoleLogDisabled {
		kubevirt.Spec.Configuration.VirtualMachineOptions = &v1.VirtualMachineOptions{DisableSerialConsoleLog: &v1.DisableSerialConsoleLog{}}
	}
	config, _, _ := testutils.NewFakeClusterConfigUsingKVWithCPUArch(kubevirt, "amd64")
	return config
}

// claimsOf are the PersistentVolumeClaims that the volumes name: virt-controller renders no Pod without them.
func claimsOf(instance *v1.VirtualMachineInstance) cache.Store {
	claims := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, nil)
	add := func(name string) {
		_ = claims.Add(&k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: name}})
	}
	for _, volume := range instance.Spec.Volumes {
		switch {
		case volume.DataVolume != nil:
			add(volume.DataVolume.Name)
		case volume.Ephemeral != nil:
			add(volume.Ephemeral.PersistentVolumeClaim.ClaimName)
		}
	}
	return claims
}

func template(config *virtconfig.ClusterConfig, claims cache.Store) *services.TemplateService {
	store := func() cache.Store { return cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc) }
	namespaces := store()
	_ = namespaces.Add(&k8sv1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab-vms"}})
	return services.NewTemplateService("launcher", 240, "/var/run/kubevirt", "/var/run/kubevirt-ephemeral-disks",
		"/var/run/kubevirt/container-disks", v1.HotplugDiskDir, "", claims, nil, config, 107, "exporter", store(), namespaces,
		services.WithNetMemoryCalculator(resources.MemoryCalculator{}))
}
