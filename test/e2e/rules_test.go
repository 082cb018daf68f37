package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// volumes replaces the virtual machine's volumes.
func volumes(list ...map[string]any) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		values := make([]any, len(list))
		for i, volume := range list {
			values[i] = volume
		}
		if err := unstructured.SetNestedSlice(o.Object, values, "spec", "template", "spec", "volumes"); err != nil {
			panic(err)
		}
	}
}

func volume(name, kind string, source map[string]any) map[string]any {
	return map[string]any{"name": name, kind: source}
}

func ownedBy(kind, name, uid string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: kind, Name: name, UID: types.UID(uid)}})
	}
}

// claim makes a PersistentVolumeClaim for the length of the test.
func claim(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	claims := clients(t).CoreV1().PersistentVolumeClaims(lab.VMNamespace)
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := claims.Delete(contextAfter(t), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestEveryRuleOnACreateDeniesOnTheRealThing(t *testing.T) {
	clean(t)
	mine, other := sessionID('4', 1), sessionID('4', 2)
	open(t, "prod", other)
	otherMachine := machine(t, backend.Lesson{Session: other}.VMName())
	if _, err := shared.Backends["dev"].Create(t.Context(), backend.CloudInitSecret, backend.Lesson{Session: sessionID('4', 3), Environment: "dev"}); err != nil {
		t.Fatal(err)
	}
	claim(t, "disk-of-another", map[string]string{"ttlab.io/session": other, "ttlab.io/env": "prod"})
	claim(t, "left-behind", nil)

	cloudInit := func(kind, field, secret string) func(*unstructured.Unstructured) {
		return volumes(volume("c", kind, map[string]any{field: map[string]any{"name": secret}}))
	}
	otherSecret := backend.Lesson{Session: other}.VMName() + "-cloudinit"
	devSecret := backend.Lesson{Session: sessionID('4', 3)}.VMName() + "-cloudinit"
	pvc := map[string]any{"claimName": "golden-ubuntu-2404"}
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		codes  []string
	}{
		"cloud-init in the clear":            {volumes(volume("c", "cloudInitNoCloud", map[string]any{"userData": "#cloud-config"})), []string{"CloudInitInline"}},
		"network data in the clear":          {volumes(volume("c", "cloudInitConfigDrive", map[string]any{"networkDataBase64": "eA=="})), []string{"CloudInitInline"}},
		"another session's Secret":           {cloudInit("cloudInitNoCloud", "secretRef", otherSecret), []string{"CloudInitForeign"}},
		"another environment's Secret":       {cloudInit("cloudInitConfigDrive", "networkDataSecretRef", devSecret), []string{"CloudInitForeign"}},
		"another session's Secret as volume": {volumes(volume("s", "secret", map[string]any{"secretName": otherSecret})), []string{"VolumeForeign"}},
		"another session's disk":             {volumes(volume("d", "persistentVolumeClaim", map[string]any{"claimName": "disk-of-another"})), []string{"VolumeForeign"}},
		"a writable golden disk":             {volumes(volume("d", "persistentVolumeClaim", pvc)), []string{"GoldenWritable"}},
		"a golden disk as DataVolume":        {volumes(volume("d", "dataVolume", map[string]any{"name": "golden-ubuntu-2404"})), []string{"GoldenWritable"}},
		"a golden disk to be written into": {
			func(o *unstructured.Unstructured) {
				utility := []any{map[string]any{"name": "backup", "claimName": "golden-ubuntu-2404", "type": "Backup"}}
				if err := unstructured.SetNestedSlice(o.Object, utility, "spec", "template", "spec", "utilityVolumes"); err != nil {
					panic(err)
				}
			},
			[]string{"GoldenWritable"},
		},
		"a layer that is not read-only": {volumes(volume("d", "ephemeral", map[string]any{"persistentVolumeClaim": pvc})), []string{"GoldenWritable"}},
		"an owner that never was":       {ownedBy("VirtualMachine", "lab-nobody", "00000000-0000-4000-8000-000000000000"), []string{"OwnerMissing"}},
		"an owner of another UID":       {ownedBy("VirtualMachine", otherMachine.Name, "00000000-0000-4000-8000-000000000000"), []string{"OwnerMissing"}},
		"an owner of another session":   {ownedBy("VirtualMachine", otherMachine.Name, string(otherMachine.UID)), []string{"OwnerForeign"}},
		"an owner that looks like KubeVirt's": {
			ownedBy("VirtualMachineInstanceReplicaSet", "lab-set", "00000000-0000-4000-8000-000000000000"), []string{"OwnerForeign"},
		},
		"a deadline of its own choice":  {annotated("vmwarden.io/deadline", "2100-01-01T00:00:00Z"), []string{"DeadlineTooLate"}},
		"a finalizer that would orphan": {func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"orphan"}) }, []string{"OrphaningDelete"}},
		"no session":                    {withLabel("ttlab.io/session", ""), []string{"SessionMissing", "SessionInvalid"}},
		"no label at all": {
			func(o *unstructured.Unstructured) {
				o.SetLabels(nil)
				unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata")
			},
			[]string{"SessionMissing"},
		},
		"a template whose labels are no map": {
			func(o *unstructured.Unstructured) {
				// KubeVirt's schema lets anything into the template's metadata.
				if err := unstructured.SetNestedField(o.Object, "none", "spec", "template", "metadata", "labels"); err != nil {
					panic(err)
				}
			},
			[]string{"ObjectUnreadable"},
		},
		"an older version of the API": {
			func(o *unstructured.Unstructured) {
				o.SetAPIVersion("kubevirt.io/v1alpha3")
				o.SetLabels(map[string]string{"ttlab.io/env": "dev", "ttlab.io/session": mine})
			},
			[]string{"EnvironmentMismatch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := object(t, backend.VMContainerDisk, backend.Lesson{Session: mine, Environment: "prod"}, c.change)
			_, err := shared.Backends["prod"].CreateObject(t.Context(), asked, metav1.CreateOptions{})
			expectDenied(t, name, err, c.codes...)
		})
	}
	adopting := object(t, backend.VMDataVolume, backend.Lesson{Session: mine, Environment: "prod"}, func(o *unstructured.Unstructured) {
		templates, _, err := unstructured.NestedSlice(o.Object, "spec", "dataVolumeTemplates")
		if err != nil {
			panic(err)
		}
		templates[0].(map[string]any)["metadata"] = map[string]any{"name": "left-behind"}
		if err := unstructured.SetNestedSlice(o.Object, templates, "spec", "dataVolumeTemplates"); err != nil {
			panic(err)
		}
	})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), adopting, metav1.CreateOptions{})
	expectDenied(t, "a template that would adopt a disk", err, "VolumeForeign")
	if got := len(machineNames(t)); got != 1 {
		t.Errorf("%d virtual machines, want the one of the other session alone", got)
	}
}

// KubeVirt reads a template's spec by encoding/json, which takes a field in another case for the field, and the rules do not. That nobody
// gets past them so is the work of its CustomResourceDefinition: fields of other names are not kept.
func TestAFieldInAnotherCaseIsNotKept(t *testing.T) {
	clean(t)
	asked := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('4', 4), Environment: "prod"},
		volumes(volume("c", "cloudInitNoCloud", map[string]any{"UserData": "#cloud-config", "secretRef": map[string]any{"name": "own"}})),
		func(o *unstructured.Unstructured) {
			inline := []any{volume("d", "cloudInitNoCloud", map[string]any{"userData": "#cloud-config"})}
			if err := unstructured.SetNestedSlice(o.Object, inline, "spec", "template", "spec", "Volumes"); err != nil {
				panic(err)
			}
		})
	kept, err := shared.Backends["prod"].CreateObject(t.Context(), asked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := kept.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"Volumes"`, `"UserData"`} {
		if strings.Contains(string(content), field) {
			t.Errorf("%s is kept: %s", field, content)
		}
	}
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
}

func TestAnOrphaningDeleteIsDeniedHoweverItIsAsked(t *testing.T) {
	clean(t)
	session := sessionID('5', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	machines := shared.Backends["prod"].Machines(lab.VMNamespace)
	for what, options := range map[string]metav1.DeleteOptions{
		"propagationPolicy": {PropagationPolicy: new(metav1.DeletePropagationOrphan)},
		"orphanDependents":  {OrphanDependents: new(true)}, // Deprecated, and still obeyed.
	} {
		expectDenied(t, what, machines.Delete(t.Context(), name, options), "OrphaningDelete")
	}
	err := machines.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, metav1.ListOptions{})
	expectDenied(t, "a deletecollection", err, "OrphaningDelete")
	if err := machines.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		t.Errorf("a foreground delete: %v", err)
	}
}

func TestInstancesSetsAndPoolsAreNoWayAround(t *testing.T) {
	clean(t)
	grantPatch(t)
	for _, kind := range []struct{ apiVersion, kind string }{
		{"kubevirt.io/v1", "VirtualMachineInstance"},
		{"kubevirt.io/v1", "VirtualMachineInstanceReplicaSet"},
		{"pool.kubevirt.io/v1beta1", "VirtualMachinePool"},
	} {
		asked := instanceLike(kind.apiVersion, kind.kind)
		_, err := shared.AdminBackend.CreateObject(t.Context(), asked.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatalf("an admin's %s: %v", kind.kind, err)
		}
		await(t, "the right to create a "+kind.kind, func(ctx context.Context) error {
			_, err = shared.Backends["prod"].CreateObject(ctx, asked.DeepCopy(), metav1.CreateOptions{})
			return expectReview(err)
		})
		if got := backend.DenialCodes(err); got[0] != "InstanceDirect" {
			t.Errorf("%s: denied by %v, want InstanceDirect first", kind.kind, got)
		}
	}
}

// instanceLike is a minimal object that runs machines without being a VirtualMachine.
func instanceLike(apiVersion, kind string) *unstructured.Unstructured {
	domain := map[string]any{"domain": map[string]any{"devices": map[string]any{}}}
	marks := map[string]any{"app": "x"}
	spec := domain
	switch kind {
	case "VirtualMachineInstanceReplicaSet":
		spec = map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": marks},
			"template": map[string]any{"metadata": map[string]any{"labels": marks}, "spec": domain},
		}
	case "VirtualMachinePool":
		spec = map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": marks},
			"virtualMachineTemplate": map[string]any{"metadata": map[string]any{"labels": marks}, "spec": map[string]any{
				"runStrategy": "Always", "template": map[string]any{"metadata": map[string]any{"labels": marks}, "spec": domain},
			}},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "around", "namespace": lab.VMNamespace}, "spec": spec,
	}}
}

func TestBelongingsOfAnotherEnvironmentAreOutOfReachAndTheOwnAreStamped(t *testing.T) {
	clean(t)
	session := sessionID('6', 1)
	legacy := object(t, backend.CloudInitSecret, backend.Lesson{Session: session, Environment: "prod"}, withLabel("ttlab.io/env", ""))
	stored, err := shared.Backends["prod"].CreateObject(t.Context(), legacy, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := stored.GetLabels()["ttlab.io/env"]; got != "prod" {
		t.Errorf("the Secret's environment is %q, want prod", got)
	}
	claimed := object(t, backend.CloudInitSecret, backend.Lesson{Session: sessionID('6', 2), Environment: "prod"})
	_, err = shared.Backends["dev"].CreateObject(t.Context(), claimed, metav1.CreateOptions{})
	expectDenied(t, "dev claims prod's Secret", err, "EnvironmentMismatch")

	devConfig, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "ttlab-dev", "backend")
	if err != nil {
		t.Fatal(err)
	}
	dev := typed(t, devConfig)
	expectDenied(t, "dev deletes prod's Secret", dev.CoreV1().Secrets(lab.VMNamespace).Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}), "EnvironmentForeign")
	if !secretExists(t, stored.GetName()) {
		t.Error("prod's Secret is gone")
	}
}

func TestALabPodIsGivenItsTimeAndNoOther(t *testing.T) {
	clean(t)
	for name, c := range map[string]struct{ sent, want any }{
		"as the backend sends it": {int64(11700), int64(11700)}, "missing": {nil, int64(11700)}, "longer": {int64(999999), int64(11700)}, "shorter": {int64(60), int64(60)},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			pod := object(t, backend.LabPod, backend.Lesson{Session: sessionID('7', 1), Environment: "prod"}, func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "activeDeadlineSeconds")
				if c.sent != nil {
					if err := unstructured.SetNestedField(o.Object, c.sent, "spec", "activeDeadlineSeconds"); err != nil {
						panic(err)
					}
				}
			})
			stored, err := shared.Backends["prod"].CreateObject(t.Context(), pod, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedInt64(stored.Object, "spec", "activeDeadlineSeconds"); got != c.want {
				t.Errorf("activeDeadlineSeconds = %d, want %d", got, c.want)
			}
		})
	}
}

func TestTheGoldenDiskIsAnAdminsAlone(t *testing.T) {
	clean(t)
	grant(t, "volumes", corev1.GroupName, "persistentvolumeclaims")
	config, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "ttlab-prod", "backend")
	if err != nil {
		t.Fatal(err)
	}
	claims := typed(t, config).CoreV1().PersistentVolumeClaims(lab.VMNamespace)
	const golden = "golden-ubuntu-2404"
	await(t, "the right to delete claims", func(ctx context.Context) error {
		err = claims.Delete(ctx, golden, metav1.DeleteOptions{})
		return expectReview(err)
	})
	expectDenied(t, "deleting it", err, "GoldenProtected")
	for what, patch := range map[string]string{
		"giving it an owner":   `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`,
		"giving it a session":  `{"metadata":{"labels":{"ttlab.io/session":"x"}}}`,
		"taking its label off": `{"metadata":{"labels":{"ttlab.io/golden":null}}}`,
	} {
		_, err := claims.Patch(t.Context(), golden, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if got := backend.DenialCodes(err); len(got) == 0 || got[0] != "GoldenProtected" {
			t.Errorf("%s: denied by %v, want GoldenProtected first (%v)", what, got, err)
		}
	}
}
