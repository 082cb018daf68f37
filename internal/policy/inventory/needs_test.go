package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

const namespace = "lab-vms"

func machine(name string, generation int64, cores int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": map[string]any{"name": name, "namespace": namespace, "uid": "uid-" + name, "generation": generation},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{
			"devices": map[string]any{}, "resources": map[string]any{"requests": map[string]any{"cpu": cores}},
		}}}},
	}}
}

func instance(name string, cores int64) *unstructured.Unstructured {
	o := machine(name, 1, cores)
	o.SetKind("VirtualMachineInstance")
	o.SetUID(types.UID("uid-instance-" + name))
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	o.Object["spec"] = spec
	return o
}

func listed(objects ...*unstructured.Unstructured) []metav1.PartialObjectMetadata {
	list := make([]metav1.PartialObjectMetadata, len(objects))
	for i, o := range objects {
		list[i].Name, list[i].UID, list[i].Generation = o.GetName(), o.GetUID(), o.GetGeneration()
	}
	return list
}

func newNeeds(objects ...runtime.Object) (*Needs, *fake.FakeDynamicClient, *testingclock.FakePassiveClock) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ledger.VirtualMachines: "VirtualMachineList", ledger.VirtualMachineInstances: "VirtualMachineInstanceList",
		instanceTypes: "VirtualMachineInstancetypeList", clusterInstanceTypes: "VirtualMachineClusterInstancetypeList",
		controllerRevisions: "ControllerRevisionList",
	}, objects...)
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	return &Needs{Client: client, Namespace: namespace, Clock: clock, Requests: &Requests{
		Cluster:       launcher.Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100, SerialConsoleLogDisabled: true},
		InstanceTypes: &InstanceTypes{Client: client, Namespace: namespace},
	}}, client, clock
}

// cpu finds the needs and gives their CPU by UID.
func cpu(t *testing.T, n *Needs, machines, instances []metav1.PartialObjectMetadata, admitted map[types.UID]ledger.Need) map[types.UID]int64 {
	t.Helper()
	needs, err := n.Find(t.Context(), machines, instances, admitted)
	if err != nil {
		t.Fatal(err)
	}
	milli := map[types.UID]int64{}
	for uid, need := range needs {
		milli[uid] = need.MilliCPU
	}
	return milli
}

func TestWhatIsUnknownIsReadOnceAndAgainForALaterGeneration(t *testing.T) {
	n, client, _ := newNeeds(machine("a", 1, 2), instance("a", 3))
	want := map[types.UID]int64{"uid-a": 2000, "uid-instance-a": 3000}
	for range 2 {
		if diff := cmp.Diff(want, cpu(t, n, listed(machine("a", 1, 0)), listed(instance("a", 0)), nil)); diff != "" {
			t.Errorf("needs (-want +got):\n%s", diff)
		}
	}
	if got := len(client.Actions()); got != 2 {
		t.Errorf("%d reads, want one of each object", got)
	}
	if err := client.Tracker().Update(ledger.VirtualMachines, machine("a", 2, 5), namespace); err != nil {
		t.Fatal(err)
	}
	if got := cpu(t, n, listed(machine("a", 2, 0)), nil, nil)["uid-a"]; got != 5000 {
		t.Errorf("the second generation needs %dm, want 5000m", got)
	}
}

func TestWhatAdmissionCalculatedHoldsForTheFirstGenerationAlone(t *testing.T) {
	n, client, _ := newNeeds(machine("a", 2, 5))
	admitted := map[types.UID]ledger.Need{"uid-a": {MilliCPU: 1000}}
	if got := cpu(t, n, listed(machine("a", 1, 0)), nil, admitted)["uid-a"]; got != 1000 || len(client.Actions()) != 0 {
		t.Errorf("the first generation needs %dm after %d reads, want 1000m after none", got, len(client.Actions()))
	}
	if got := cpu(t, n, listed(machine("a", 2, 0)), nil, admitted)["uid-a"]; got != 5000 {
		t.Errorf("the second generation needs %dm, want 5000m", got)
	}
}

func TestWhatIsGoneSinceTheListNeedsNothing(t *testing.T) {
	n, _, _ := newNeeds(machine("new", 1, 2))
	old := machine("new", 1, 0)
	old.SetUID("uid-of-another-of-this-name")
	want := map[types.UID]int64{"uid-gone": 0, "uid-of-another-of-this-name": 0}
	if diff := cmp.Diff(want, cpu(t, n, listed(machine("gone", 1, 0), old), nil, nil)); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

func TestWhatNoListShowsIsForgotten(t *testing.T) {
	n, _, clock := newNeeds(machine("a", 1, 2))
	cpu(t, n, listed(machine("a", 1, 0)), nil, nil)
	clock.SetTime(clock.Now().Add(2 * forgetAfter))
	cpu(t, n, nil, nil, nil)
	if _, found := n.known.of("uid-a"); found {
		t.Error("the need of an object that no list shows is still kept")
	}
}

func TestAnInstanceTypeIsReadAsKubeVirtKeepsItElseByItsName(t *testing.T) {
	spec := func(guest int64) map[string]any {
		return map[string]any{"cpu": map[string]any{"guest": guest}, "memory": map[string]any{"guest": "1Gi"}}
	}
	kept := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": map[string]any{"name": "kept", "namespace": namespace},
		"data": map[string]any{"kind": "VirtualMachineInstancetype", "spec": spec(20)},
	}}
	named := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype", "metadata": map[string]any{"name": "large"}, "spec": spec(40),
	}}
	for revision, want := range map[string]int64{"kept": 2000, "lost": 4000, "": 4000} {
		m := machine("a", 1, 0)
		unstructured.RemoveNestedField(m.Object, "spec", "template", "spec", "domain", "resources")
		if err := unstructured.SetNestedStringMap(m.Object, map[string]string{"name": "large", "revisionName": revision}, "spec", "instancetype"); err != nil {
			t.Fatal(err)
		}
		n, _, _ := newNeeds(m, kept, named)
		if got := cpu(t, n, listed(m), nil, nil)["uid-a"]; got != want {
			t.Errorf("with the revision %q it needs %dm, want %dm", revision, got, want)
		}
	}
	m := machine("a", 1, 0)
	if err := unstructured.SetNestedStringMap(m.Object, map[string]string{"name": "unheard-of", "kind": "VirtualMachineInstancetype"}, "spec", "instancetype"); err != nil {
		t.Fatal(err)
	}
	n, _, _ := newNeeds(m)
	if _, err := n.Find(t.Context(), listed(m), nil, nil); err == nil {
		t.Error("an instance type that does not exist is no error")
	}
}
