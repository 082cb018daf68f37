package launcher

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// vectorsFile holds KubeVirt's own answers. See test/kubevirt/vectors.
//
//go:embed testdata/vectors.json
var vectorsFile []byte

type vector struct {
	Name    string `json:"name"`
	Cluster struct {
		CPUAllocationRatio       int    `json:"cpuAllocationRatio"`
		MemoryOvercommitPercent  int    `json:"memoryOvercommitPercent"`
		AdditionalOverheadRatio  string `json:"additionalOverheadRatio"`
		SerialConsoleLogDisabled bool   `json:"serialConsoleLogDisabled"`
	} `json:"cluster"`
	Annotations  map[string]string                                   `json:"annotations"`
	Spec         kubevirtv1.VirtualMachineInstanceSpec               `json:"spec"`
	InstanceType *instancetypev1beta1.VirtualMachineInstancetypeSpec `json:"instancetype"`
	MilliCPU     int64                                               `json:"milliCPU"`
	Memory       int64                                               `json:"memory"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	var all []vector
	if err := json.Unmarshal(vectorsFile, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Fatalf("%d vectors, want several hundred", len(all))
	}
	return all
}

func (v vector) cluster(t *testing.T) Cluster {
	t.Helper()
	c := Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100, SerialConsoleLogDisabled: v.Cluster.SerialConsoleLogDisabled}
	if v.Cluster.CPUAllocationRatio != 0 {
		c.CPUAllocationRatio = v.Cluster.CPUAllocationRatio
	}
	if v.Cluster.MemoryOvercommitPercent != 0 {
		c.MemoryOvercommitPercent = v.Cluster.MemoryOvercommitPercent
	}
	if v.Cluster.AdditionalOverheadRatio != "" {
		var err error
		if c.AdditionalOverheadRatio, err = strconv.ParseFloat(v.Cluster.AdditionalOverheadRatio, 64); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestTheRequestsAreThoseThatKubeVirtGivesItsLauncherPods(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			if v.InstanceType != nil {
				Apply(v.InstanceType, &v.Spec)
			}
			got := Of(&v.Spec, v.Annotations, v.cluster(t))
			if got.CPU.MilliValue() != v.MilliCPU || got.Memory.Value() != v.Memory {
				t.Errorf("requests = %dm CPU and %d bytes, KubeVirt says %dm and %d", got.CPU.MilliValue(), got.Memory.Value(), v.MilliCPU, v.Memory)
			}
		})
	}
}

// What KubeVirt's webhook has filled in already must not be counted a second time: instances that exist are measured too.
func TestDefaultsThatAreFilledInAlreadyChangeNothing(t *testing.T) {
	for _, v := range vectors(t) {
		before := Of(&v.Spec, v.Annotations, v.cluster(t))
		setDefaults(&v.Spec)
		after := Of(&v.Spec, v.Annotations, v.cluster(t))
		if before.CPU.Cmp(after.CPU) != 0 || before.Memory.Cmp(after.Memory) != 0 {
			t.Errorf("%s: %v before the defaults, %v after", v.Name, before, after)
		}
	}
}

func TestAPreferenceIsCountedAtTheMostItCanAdd(t *testing.T) {
	spec := kubevirtv1.VirtualMachineInstanceSpec{}
	plain := Of(&spec, nil, Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100})
	Prefer(&spec)
	preferred := Of(&spec, nil, Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100})
	if preferred.Memory.Value()-plain.Memory.Value() != tpmOverhead {
		t.Errorf("a preference adds %d bytes, want %d", preferred.Memory.Value()-plain.Memory.Value(), tpmOverhead)
	}
}
