package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	testlab "github.com/ttlab/vmwarden/test/lab"
)

func TestAnEnvironmentsOwnCapBindsItAlone(t *testing.T) {
	clean(t)
	reconfigure(t, strings.Replace(testlab.Config, "  - name: prod\n", "  - name: prod\n    cap: 2\n", 1))
	fill(t, 'A', 2)
	err := createAs(t, "prod", sessionID('A', 2))
	expectDenied(t, "prod's third of two", err, "CapEnvironment")
	if err := createAs(t, "dev", sessionID('A', 3)); err != nil {
		t.Errorf("dev, which has no cap of its own: %v", err)
	}
	burstOfProd := burst(t, 20, func(i int, _ string) *unstructured.Unstructured {
		return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('A', 100+i), Environment: testlab.Environments[i%2]})
	})
	admitted := 0
	for _, err := range burstOfProd {
		if err == nil {
			admitted++
		}
	}
	if admitted != capacity-3 {
		t.Errorf("%d more were admitted, want %d: dev's, up to the namespace's cap", admitted, capacity-3)
	}
}

func TestASessionHasThreeMachinesAtMostAlsoAtOnce(t *testing.T) {
	clean(t)
	session := sessionID('B', 0)
	answers := burst(t, 8, func(i int, _ string) *unstructured.Unstructured {
		return object(t, backend.VMContainerDisk, backend.Lesson{Session: session, Environment: testlab.Environments[i%2]}, withName(fmt.Sprintf("lab-b%d", i)))
	})
	perEnvironment := map[string]int{}
	for i, err := range answers {
		if err == nil {
			perEnvironment[testlab.Environments[i%2]]++
		} else if got := backend.DenialCodes(err); len(got) != 1 || (got[0] != "CapSession" && got[0] != "CapReserved") {
			t.Errorf("a create of the session: %v", err)
		}
	}
	if perEnvironment["prod"] != 3 || perEnvironment["dev"] != 3 {
		t.Errorf("admitted of four each: %v, want 3 of each environment's session", perEnvironment)
	}
	err := createAs(t, "prod", session, withName("lab-b9"))
	expectDenied(t, "the fourth of a session", err, "CapSession")
}

func TestTheBudgetsCountWhatTheLaunchersWillRequest(t *testing.T) {
	for code, caps := range map[string]string{"CapCPU": "cpu: 5, memory: unlimited", "CapMemory": "cpu: unlimited, memory: 10Gi"} {
		t.Run(code, func(t *testing.T) {
			clean(t)
			reconfigure(t, withCaps(t, caps))
			// 2.006 CPUs and 4.31 Gi each.
			fill(t, 'C', 2)
			err := createAs(t, "prod", sessionID('C', 2))
			expectDenied(t, "what would pass the budget", err, code)
			small := []func(*unstructured.Unstructured){
				withSpec("100m", "domain", "resources", "requests", "cpu"),
				withSpec("128Mi", "domain", "memory", "guest"),
				withSpec("128Mi", "domain", "resources", "requests", "memory"),
			}
			if err := createAs(t, "prod", sessionID('C', 3), small...); err != nil {
				t.Errorf("a small one that still fits: %v", err)
			}
		})
	}
}

// Eight of the backend's own virtual machines do not fit into the ResourceQuota of 16 CPUs that stands behind the default budget:
// the containers besides the guest's request 6 thousandths of a CPU each time.
func TestUnderTheDefaultBudgetTheEighthOfTwoCPUsIsToldAtOnceThatItDoesNotFit(t *testing.T) {
	clean(t)
	reconfigure(t, withCaps(t, ""))
	fill(t, 'D', 7)
	expectDenied(t, "the eighth", createAs(t, "prod", sessionID('D', 7)), "CapCPU")
}

func TestAnInstanceTypeSaysWhatAMachineRequests(t *testing.T) {
	clean(t)
	reconfigure(t, withCaps(t, "cpu: 40, memory: 5Gi"))
	client, err := dynamic.NewForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	types := client.Resource(instancetypev1beta1.SchemeGroupVersion.WithResource("virtualmachineinstancetypes")).Namespace(testlab.VMNamespace)
	instanceType := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype", "metadata": map[string]any{"name": "large"},
		"spec": map[string]any{"cpu": map[string]any{"guest": int64(4)}, "memory": map[string]any{"guest": "6Gi"}},
	}}
	if _, err := types.Create(t.Context(), instanceType, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := types.Delete(contextAfter(t), "large", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	typed := func(name string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "domain", "cpu")
			unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "domain", "memory")
			unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "domain", "resources")
			if err := unstructured.SetNestedStringMap(o.Object, map[string]string{"name": name, "kind": "VirtualMachineInstancetype"}, "spec", "instancetype"); err != nil {
				t.Fatal(err)
			}
		}
	}
	expectDenied(t, "6 Gi by an instance type, into 5", createAs(t, "prod", sessionID('E', 0), typed("large")), "CapMemory")
	err = createAs(t, "prod", sessionID('E', 1), typed("unheard-of"))
	expectDenied(t, "an instance type that does not exist", err, "CapUnknown")
	if err != nil && !strings.Contains(err.Error(), "instance type cannot be read") {
		t.Errorf("the denial does not name the instance type as the reason: %v", err)
	}
}

func TestAnInstanceWithoutItsMachineHoldsItsPlaceAndWhatItRequests(t *testing.T) {
	clean(t)
	reconfigure(t, withCaps(t, "vms: 2, cpu: 40, memory: 6Gi"))
	instance := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "left-behind"}}
	instance.Spec.Domain.Devices = kubevirtv1.Devices{}
	instance.Spec.Domain.Memory = &kubevirtv1.Memory{Guest: quantity("4Gi")}
	if _, err := shared.AdminBackend.Instances(testlab.VMNamespace).Create(t.Context(), instance, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expectDenied(t, "4 Gi more, into 6", createAs(t, "prod", sessionID('F', 0)), "CapMemory")
}

func TestADenialTellsWhoHoldsThePlacesAndNoOtherEnvironmentsSessions(t *testing.T) {
	clean(t)
	fill(t, 'G', capacity)
	foreign := createAs(t, "dev", sessionID('G', 100))
	expectDenied(t, "dev's in a full namespace", foreign, "CapVMs")
	own := createAs(t, "prod", sessionID('G', 101))
	expectDenied(t, "prod's in a full namespace", own, "CapVMs")
	if foreign == nil || own == nil {
		t.Fatal("not denied")
	}
	for _, err := range []error{foreign, own} {
		if !strings.Contains(err.Error(), "prod holds 8") || !strings.Contains(err.Error(), "next deadline") {
			t.Errorf("the denial does not tell who holds the places and when one is due: %v", err)
		}
	}
	if strings.Contains(foreign.Error(), sessionID('G', 0)) {
		t.Errorf("dev is told of prod's sessions: %v", foreign)
	}
	if !strings.Contains(own.Error(), sessionID('G', 0)) {
		t.Errorf("prod is not told which of its sessions hold the places: %v", own)
	}
}

func TestWhoeverTakesTheLastPlaceIsWarned(t *testing.T) {
	clean(t)
	fill(t, 'H', capacity-2)
	prod, heard := warned(t.Context(), t, "prod")
	for i, last := range []bool{false, true} {
		o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('H', 100+i), Environment: "prod"})
		if _, err := prod.CreateObject(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if heard.contain("takes the last place") != last {
			t.Errorf("warned of the last place: %t, want %t", !last, last)
		}
	}
}

// A lab VM of a controller, such as that of a VirtualMachinePool, counts like any other.
func TestACreateByAControllerOrByServerSideApplyCounts(t *testing.T) {
	clean(t)
	fill(t, 'I', capacity-2)
	config := shared.ControlPlane.AdminConfig()
	config.Impersonate.UserName, config.Impersonate.Groups = "system:serviceaccount:kubevirt:kubevirt-controller", []string{"system:masters"}
	controller := backendOf(t, "", config)
	scaled := func(i int) error {
		o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('I', 100+i), Environment: "prod"})
		_, err := controller.CreateObject(t.Context(), o, metav1.CreateOptions{})
		return err
	}
	if err := scaled(0); err != nil {
		t.Fatalf("a controller's create with two places free: %v", err)
	}
	client, err := dynamic.NewForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	machines := client.Resource(kubevirtv1.GroupVersion.WithResource("virtualmachines")).Namespace(testlab.VMNamespace)
	apply := func(i int) error {
		o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('I', 200+i), Environment: "prod"})
		_, err := machines.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test"})
		return err
	}
	if err := apply(0); err != nil {
		t.Fatalf("a server-side apply with one place free: %v", err)
	}
	expectDenied(t, "a server-side apply of the ninth", apply(1), "CapVMs")
	expectDenied(t, "a controller's ninth", scaled(1), "CapVMs")
	if err := apply(0); err != nil {
		t.Errorf("a server-side apply of one that exists: %v", err)
	}
	if _, found := machine(t, backend.Lesson{Session: sessionID('I', 200)}.VMName()).Annotations[lab.DeadlineAnnotation]; !found {
		t.Error("what was applied has no deadline")
	}
}
