package e2e

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

var machineResource = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// warnings collects what the API server warns of.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// machinesOf are the virtual machines of the VM namespace for a backend, untyped, and the warnings that it gets.
func machinesOf(t *testing.T, environment string) (dynamic.ResourceInterface, *warnings) {
	t.Helper()
	config, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "ttlab-"+environment, "backend")
	if err != nil {
		t.Fatal(err)
	}
	heard := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = heard
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(machineResource).Namespace(lab.VMNamespace), heard
}

func TestTheEnvironmentPersistsAgainstEveryWayOfWriting(t *testing.T) {
	clean(t)
	grantPatch(t)
	lesson := backend.Lesson{Session: sessionID('0', 1), Environment: "prod"}
	open(t, "prod", lesson.Session)
	machines, _ := machinesOf(t, "prod")
	name := lesson.VMName()
	for what, value := range map[string]any{"removed": nil, "emptied": "", "altered": "dev"} {
		stored, err := machines.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changed := stored.DeepCopy()
		labels := changed.GetLabels()
		if value == nil {
			delete(labels, "ttlab.io/env")
		} else {
			labels["ttlab.io/env"] = value.(string)
		}
		changed.SetLabels(labels)
		apply := object(t, backend.VMContainerDisk, lesson)
		apply.SetLabels(labels)
		patch := encodeJSON(t, map[string]any{"metadata": map[string]any{"labels": map[string]any{"ttlab.io/env": value}}})
		jsonPatch := encodeJSON(t, []any{map[string]any{"op": "replace", "path": "/metadata/labels", "value": labels}})

		answers := map[string]error{}
		_, answers["update"] = machines.Update(t.Context(), changed, metav1.UpdateOptions{})
		_, answers["merge patch"] = machines.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		_, answers["JSON patch"] = machines.Patch(t.Context(), name, types.JSONPatchType, jsonPatch, metav1.PatchOptions{})
		if value != nil {
			// A server-side apply that leaves a label out which another manager set does not remove it.
			_, answers["server-side apply"] = machines.Apply(t.Context(), name, apply, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
		}
		for how, err := range answers {
			if got := backend.DenialCodes(err); !slices.Contains(got, "EnvironmentImmutable") {
				t.Errorf("%s by %s: denied by %v, want EnvironmentImmutable among them (%v)", what, how, got, err)
			}
		}
	}
	if got := machine(t, name).Labels["ttlab.io/env"]; got != "prod" {
		t.Errorf("the environment is %q", got)
	}
}

func encodeJSON(t *testing.T, value any) []byte {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestApplyingTheSameManifestTwiceChangesNothing(t *testing.T) {
	clean(t)
	grantPatch(t)
	lesson := backend.Lesson{Session: sessionID('0', 2), Environment: "prod"}
	machines, _ := machinesOf(t, "prod")
	manifest := object(t, backend.VMGolden, lesson)
	first, err := machines.Apply(t.Context(), lesson.VMName(), manifest, metav1.ApplyOptions{FieldManager: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := machines.Apply(t.Context(), lesson.VMName(), manifest, metav1.ApplyOptions{FieldManager: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	// Client-side: what kubectl apply sends the second time is an empty patch, or the object as it is.
	third, err := machines.Patch(t.Context(), lesson.VMName(), types.MergePatchType, encodeJSON(t, manifest.Object), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, again := range map[string]*unstructured.Unstructured{"server-side": second, "client-side": third} {
		if diff := cmp.Diff(first.GetResourceVersion(), again.GetResourceVersion()); diff != "" {
			t.Errorf("%s: the second apply wrote (-first +second):\n%s", what, diff)
		}
	}
}

func TestAnObjectFromBeforeTheInstallationCanBeChangedAndDeletedWithAWarning(t *testing.T) {
	clean(t)
	grantPatch(t)
	lesson := backend.Lesson{Session: sessionID('0', 3), Environment: "prod"}
	// As it was stored before anybody stamped anything: an admin's object without a label concerns no lab, and gets none.
	old := object(t, backend.VMContainerDisk, lesson)
	old.SetLabels(nil)
	unstructured.RemoveNestedField(old.Object, "spec", "template", "metadata")
	if _, err := shared.AdminBackend.CreateObject(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	machines, heard := machinesOf(t, "prod")
	for _, patch := range []string{`{"spec":{"runStrategy":"Halted"}}`, `{"metadata":{"labels":{"ttlab.io/env":"prod"}}}`} {
		if _, err := machines.Patch(t.Context(), lesson.VMName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	if len(heard.texts) != 1 {
		t.Errorf("warnings = %q, want one, of the change without an environment", heard.texts)
	}
	if err := machines.Delete(t.Context(), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting it: %v", err)
	}
}
