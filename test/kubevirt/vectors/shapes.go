package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/yaml"
)

// cluster is the part of KubeVirt's configuration that changes what a launcher requests; zero values are KubeVirt's defaults.
type cluster struct {
	CPUAllocationRatio       int    `json:"cpuAllocationRatio,omitempty"`
	MemoryOvercommitPercent  int    `json:"memoryOvercommitPercent,omitempty"`
	AdditionalOverheadRatio  string `json:"additionalOverheadRatio,omitempty"`
	SerialConsoleLogDisabled bool   `json:"serialConsoleLogDisabled,omitempty"`
}

// shape is one question: the template of a virtual machine.
type shape struct {
	Name         string                                              `json:"name"`
	Cluster      cluster                                             `json:"cluster,omitzero"`
	Annotations  map[string]string                                   `json:"annotations,omitempty"`
	Spec         v1.VirtualMachineInstanceSpec                       `json:"spec"`
	InstanceType *instancetypev1beta1.VirtualMachineInstancetypeSpec `json:"instancetype,omitempty"`
}

type change func(*v1.VirtualMachineInstanceSpec)

// shapes are the backend's own manifests, and every processor with every memory with every extra.
func shapes(manifests []string) ([]shape, error) {
	var all []shape
	for _, path := range manifests {
		machines, err := read(path)
		if err != nil {
			return nil, err
		}
		for i, machine := range machines {
			all = append(all, shape{Name: fmt.Sprintf("backend %s %d", strings.TrimSuffix(filepath.Base(path), ".yaml"), i), Spec: machine.Spec.Template.Spec})
		}
	}
	for processorName, processor := range processors {
		for memoryName, memory := range memories {
			all = append(all, shape{Name: processorName + ", " + memoryName, Spec: spec(processor, memory)})
		}
	}
	for extraName, extra := range extras {
		all = append(all, shape{Name: extraName, Spec: spec(processors["2 cores"], memories["guest 1Gi"], extra)})
		all = append(all, shape{Name: extraName + ", guaranteed", Spec: spec(processors["cpu request = limit 2"], memories["request = limit 1Gi"], extra)})
		all = append(all, shape{Name: extraName + ", dedicated", Spec: spec(processors["2 dedicated cores"], memories["guest 1Gi"], extra)})
	}
	for clusterName, c := range clusters {
		for processorName, processor := range processors {
			all = append(all, shape{Name: clusterName + ", " + processorName, Cluster: c, Spec: spec(processor, memories["guest 1Gi"])})
		}
		for memoryName, memory := range memories {
			all = append(all, shape{Name: clusterName + ", " + memoryName, Cluster: c, Spec: spec(processors["nothing"], memory)})
		}
	}
	for typeName, instanceType := range instanceTypes {
		all = append(all, shape{Name: "instance type " + typeName, Spec: spec(), InstanceType: instanceType})
	}
	parity := map[string]string{v1.EmulatorThreadCompleteToEvenParity: ""}
	for _, name := range []string{"2 dedicated, emulator thread", "dedicated, emulator thread, cpu request 3"} {
		all = append(all, shape{Name: "even parity, " + name, Annotations: parity, Spec: spec(processors[name], memories["guest 1Gi"])})
	}
	sort(all)
	return all, nil
}

func read(path string) ([]*v1.VirtualMachine, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var machines []*v1.VirtualMachine
	for _, document := range strings.Split(string(content), "\n---\n") {
		document = os.Expand(document, func(name string) string {
			return map[string]string{"SID": "a0000000-0000-4000-8000-000000000001", "SID8": "a0000000", "ENV": "prod", "N": "1"}[name]
		})
		machine := &v1.VirtualMachine{}
		if err := yaml.Unmarshal([]byte(document), machine); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if machine.Kind == "VirtualMachine" {
			machines = append(machines, machine)
		}
	}
	return machines, nil
}

func spec(changes ...change) v1.VirtualMachineInstanceSpec {
	s := v1.VirtualMachineInstanceSpec{}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func quantity(value string) *resource.Quantity {
	q := resource.MustParse(value)
	return &q
}

func request(name k8sv1.ResourceName, value string) change {
	return func(s *v1.VirtualMachineInstanceSpec) {
		if s.Domain.Resources.Requests == nil {
			s.Domain.Resources.Requests = k8sv1.ResourceList{}
		}
		s.Domain.Resources.Requests[name] = resource.MustParse(value)
	}
}

func limit(name k8sv1.ResourceName, value string) change {
	return func(s *v1.VirtualMachineInstanceSpec) {
		if s.Domain.Resources.Limits == nil {
			s.Domain.Resources.Limits = k8sv1.ResourceList{}
		}
		s.Domain.Resources.Limits[name] = resource.MustParse(value)
	}
}

func cpu(c v1.CPU) change {
	return func(s *v1.VirtualMachineInstanceSpec) { s.Domain.CPU = c.DeepCopy() }
}

func memory(m v1.Memory) change {
	return func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Memory = m.DeepCopy() }
}

func both(changes ...change) change {
	return func(s *v1.VirtualMachineInstanceSpec) {
		for _, change := range changes {
			change(s)
		}
	}
}
