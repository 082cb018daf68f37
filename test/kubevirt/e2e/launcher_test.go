package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/lab"
)

// Of all shapes that the calculation is compared for, those of KubeVirt's default configuration are sent to KubeVirt's own servers,
// one in so many. fewestShapes of them have to come to a launcher Pod for the test to have shown anything.
const (
	oneShapeIn   = 5
	fewestShapes = 60
)

// shape is one of those of internal/policy/launcher.
type shape struct {
	Name         string                                `json:"name"`
	Cluster      map[string]any                        `json:"cluster"`
	InstanceType map[string]any                        `json:"instancetype"`
	Annotations  map[string]string                     `json:"annotations"`
	Spec         kubevirtv1.VirtualMachineInstanceSpec `json:"spec"`
}

func shapes(t *testing.T) []shape {
	t.Helper()
	content, err := os.ReadFile("../../../internal/policy/launcher/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all, chosen []shape
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		if len(s.Cluster) == 0 && len(s.InstanceType) == 0 && i%oneShapeIn == 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

var byDefault = launcher.Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100}

// count is what the namespace's quota has counted so far.
func count(ctx context.Context) (launcher.Requests, error) {
	quota, err := shared.Clients.CoreV1().ResourceQuotas(lab.VMNamespace).Get(ctx, "requests", metav1.GetOptions{})
	if err != nil {
		return launcher.Requests{}, err
	}
	cpu, counted := quota.Status.Used[corev1.ResourceRequestsCPU]
	if !counted {
		return launcher.Requests{}, fmt.Errorf("the quota has not counted yet")
	}
	return launcher.Requests{CPU: cpu, Memory: quota.Status.Used[corev1.ResourceRequestsMemory]}, nil
}

func countRequests(t *testing.T) {
	t.Helper()
	quotas := shared.Clients.CoreV1().ResourceQuotas(lab.VMNamespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "requests"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceRequestsCPU: resource.MustParse("1M"), corev1.ResourceRequestsMemory: resource.MustParse("1Pi"),
		}},
	}
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quotas.Delete(stack.After(t), quota.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	shared.Await(t, "the quota counts", func(ctx context.Context) error {
		_, err := count(ctx)
		return err
	})
}

// The quota has the last word: what it counts for the Pod that virt-controller makes is what we say before there is one.
func TestTheQuotaCountsWhatWeCalculateForEachLauncherPod(t *testing.T) {
	shared.Clean(t)
	countRequests(t)
	instances := shared.Machines.KubevirtV1().VirtualMachineInstances(lab.VMNamespace)
	compared, refused := 0, 0
	for i, s := range shapes(t) {
		instance := &kubevirtv1.VirtualMachineInstance{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shape-%d", i), Annotations: s.Annotations},
			Spec:       s.Spec,
		}
		before, err := count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := instances.Create(t.Context(), instance, metav1.CreateOptions{}); err != nil {
			// virt-api does not let every shape in: some need a feature gate, some contradict themselves.
			refused++
			continue
		}
		var after launcher.Requests
		shared.Await(t, s.Name+" has a launcher Pod", func(ctx context.Context) error {
			if after, err = count(ctx); err != nil {
				return err
			}
			if after.Memory.Cmp(before.Memory) == 0 {
				created, err := instances.Get(ctx, instance.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				return fmt.Errorf("nothing was counted; the instance says %v", created.Status.Conditions)
			}
			return nil
		})
		after.CPU.Sub(before.CPU)
		after.Memory.Sub(before.Memory)
		want := launcher.Of(&s.Spec, s.Annotations, byDefault)
		if after.CPU.Cmp(want.CPU) != 0 || after.Memory.Cmp(want.Memory) != 0 {
			t.Errorf("%s: the quota counts %s CPU and %s, we %s and %s", s.Name, &after.CPU, &after.Memory, &want.CPU, &want.Memory)
		}
		compared++
	}
	t.Logf("%d shapes compared, %d refused by virt-api", compared, refused)
	if compared < fewestShapes {
		t.Errorf("%d shapes were compared, want %d", compared, fewestShapes)
	}
}

func TestTheQuotaCountsWhatWeCalculateForEachOfTheBackendsMachines(t *testing.T) {
	shared.Clean(t)
	countRequests(t)
	for i, manifest := range []string{backend.VMContainerDisk, backend.VMGolden, backend.VMDataVolume} {
		before, err := count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lesson := session(60 + i)
		open(t, lesson, manifest)
		shared.AwaitRunning(t, lesson.VMName())
		after, err := count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after.CPU.Sub(before.CPU)
		after.Memory.Sub(before.Memory)
		machine, err := machines().Get(t.Context(), lesson.VMName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := launcher.Of(&machine.Spec.Template.Spec, nil, byDefault)
		if after.CPU.Cmp(want.CPU) != 0 || after.Memory.Cmp(want.Memory) != 0 {
			t.Errorf("%s: the quota counts %s CPU and %s, we %s and %s", manifest, &after.CPU, &after.Memory, &want.CPU, &want.Memory)
		}
	}
}
