package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func TestTheBackendsManifestsGoInAsTheyAreAndAreStamped(t *testing.T) {
	for i, manifest := range []string{backend.VMContainerDisk, backend.VMGolden, backend.VMDataVolume} {
		t.Run(manifest, func(t *testing.T) {
			clean(t)
			lesson := backend.Lesson{Session: sessionID('a', i), Environment: "prod"}
			sent := object(t, manifest, lesson)
			before := time.Now()
			stored, err := shared.Backends["prod"].Open(t.Context(), lesson.Session, manifest)
			if err != nil {
				t.Fatal(err)
			}
			deadline, err := vmwarden.ParseDeadline(stored.GetAnnotations()[vmwarden.DeadlineAnnotation])
			if err != nil {
				t.Fatal(err)
			}
			if life := deadline.Sub(before); life < 194*time.Minute || life > 196*time.Minute {
				t.Errorf("the deadline is %s from now, want 195 minutes", life)
			}
			// Nothing but the stamps differs from what was sent.
			want := sent.DeepCopy()
			mark := func(path ...string) {
				setNested(t, want, vmwarden.FormatDeadline(deadline), append(path, "annotations", vmwarden.DeadlineAnnotation)...)
			}
			mark("metadata")
			mark("spec", "template", "metadata")
			setNested(t, want, "system:serviceaccount:ttlab-prod:backend", "metadata", "annotations", vmwarden.CreatedByAnnotation)
			setNested(t, want, "prod", "spec", "template", "metadata", "labels", "ttlab.io/env")
			for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
				unstructured.RemoveNestedField(stored.Object, "metadata", key)
			}
			if diff := cmp.Diff(want.Object, stored.Object); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func setNested(t *testing.T, o *unstructured.Unstructured, value string, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func TestAGroupSessionAndAPodSessionGoIn(t *testing.T) {
	clean(t)
	session := sessionID('b', 1)
	open(t, "prod", session)
	for member := 1; member <= 2; member++ {
		lesson := backend.Lesson{Session: session, Environment: "prod", Member: member}
		_, err := shared.Backends["prod"].Create(t.Context(), backend.GroupMember, lesson)
		// The manifest of each member carries the group's Service and NetworkPolicy too: the second finds them made.
		if err != nil && !(member == 2 && apierrors.IsAlreadyExists(err)) {
			t.Fatal(err)
		}
	}
	if got := machineNames(t); len(got) != 3 {
		t.Errorf("virtual machines = %v, want the lead and two members", got)
	}
	if _, err := shared.Backends["prod"].Create(t.Context(), backend.LabPod, backend.Lesson{Session: sessionID('b', 2), Environment: "prod"}); err != nil {
		t.Errorf("creating a Pod session: %v", err)
	}
}

func TestAMissingEnvironmentIsStampedAndAWrongOneDenied(t *testing.T) {
	clean(t)
	lesson := backend.Lesson{Session: sessionID('c', 1), Environment: "dev"}
	legacy := object(t, backend.VMContainerDisk, lesson, withLabel("ttlab.io/env", ""))
	stored, err := shared.Backends["dev"].CreateObject(t.Context(), legacy, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := stored.GetLabels()["ttlab.io/env"]; got != "dev" {
		t.Errorf("the legacy backend's object has environment %q, want dev", got)
	}
	claim := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('c', 2), Environment: "prod"})
	_, err = shared.Backends["dev"].CreateObject(t.Context(), claim, metav1.CreateOptions{})
	expectDenied(t, "dev claims prod", err, "EnvironmentMismatch")
}

func TestAnotherEnvironmentsMachineIsOutOfReach(t *testing.T) {
	clean(t)
	session := sessionID('d', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	dev := shared.Backends["dev"].Machines(lab.VMNamespace)
	expectDenied(t, "dev deletes prod's machine", dev.Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	// A deletecollection reviews each object with no name in the request.
	err := dev.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	expectDenied(t, "dev deletes everything", err, "EnvironmentForeign")
	reaper, err := shared.ReaperConfig(t.Context(), "dev")
	if err != nil {
		t.Fatal(err)
	}
	devReaper, err := backend.New("dev", reaper)
	if err != nil {
		t.Fatal(err)
	}
	expectDenied(t, "dev's reaper deletes prod's machine", devReaper.Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	if !exists(t, name) {
		t.Fatal("prod's machine is gone")
	}
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("prod deletes its own machine: %v", err)
	}
}

func TestADenialNamesEveryViolationAndItsField(t *testing.T) {
	clean(t)
	bad := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('e', 1), Environment: "prod"},
		withLabel("ttlab.io/session", "seven"))
	setNested(t, bad, "seven", "spec", "template", "metadata", "labels", "ttlab.io/session")
	_, err := shared.Backends["dev"].CreateObject(t.Context(), bad, metav1.CreateOptions{})
	expectDenied(t, "two faults at once", err, "EnvironmentMismatch", "SessionInvalid")
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("%v is no answer of the API server", err)
	}
	fields := map[string]bool{}
	for _, cause := range status.Status().Details.Causes {
		fields[cause.Field] = true
	}
	for _, want := range []string{"metadata.labels[ttlab.io/env]", "metadata.labels[ttlab.io/session]"} {
		if !fields[want] {
			t.Errorf("no cause names the field %s: %v", want, fields)
		}
	}
}

func TestWhatMustNotChangeDoesNot(t *testing.T) {
	clean(t)
	session := sessionID('f', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	// The backend's own Role has no patch; somebody whom a cluster admin gave one is still bound.
	grantPatch(t)
	machines := shared.Backends["prod"].Machines(lab.VMNamespace)
	for _, c := range []struct {
		what  string
		patch map[string]any
		code  string
	}{
		{"altering the environment", labels("ttlab.io/env", "dev"), "EnvironmentImmutable"},
		{"emptying the environment", labels("ttlab.io/env", ""), "EnvironmentImmutable"},
		{"dropping the environment", labels("ttlab.io/env", nil), "EnvironmentImmutable"},
		{"altering the session", labels("ttlab.io/session", sessionID('f', 2)), "SessionImmutable"},
		{"dropping the session", labels("ttlab.io/session", nil), "SessionImmutable"},
		{"dropping the deadline", inMetadata("annotations", vmwarden.DeadlineAnnotation, nil), "DeadlineImmutable"},
		{"moving the deadline", inMetadata("annotations", vmwarden.DeadlineAnnotation, "2100-01-01T00:00:00Z"), "DeadlineImmutable"},
	} {
		body, err := json.Marshal(c.patch)
		if err != nil {
			t.Fatal(err)
		}
		_, err = machines.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
		if got := backend.DenialCodes(err); !slices.Contains(got, c.code) {
			t.Errorf("%s: denied by %v, want %s among them (%v)", c.what, got, c.code, err)
		}
	}
	halted := []byte(`{"spec":{"runStrategy":"Halted"}}`)
	if _, err := machines.Patch(t.Context(), name, types.MergePatchType, halted, metav1.PatchOptions{}); err != nil {
		t.Errorf("stopping the machine, which changes nothing of this: %v", err)
	}
}

func labels(key string, value any) map[string]any { return inMetadata("labels", key, value) }

func inMetadata(field, key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}}
}
