package e2e

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
)

// send sends a member's objects as the backend does, and gives the first refusal. The group's Service and NetworkPolicy come with
// every member, and exist from the first on.
func send(t *testing.T, lesson backend.Lesson, objects []*unstructured.Unstructured) error {
	t.Helper()
	for _, object := range objects {
		_, err := shared.Backends[lesson.Environment].CreateObject(t.Context(), object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func TestAGroupEndsWithItsLead(t *testing.T) {
	shared.Clean(t)
	lesson := session(20)
	open(t, lesson, backend.VMContainerDisk)
	names := []string{lesson.VMName()}
	for number := 1; number <= 2; number++ {
		if err := send(t, lesson, member(t, lesson, number)); err != nil {
			t.Fatal(err)
		}
		names = append(names, backend.Lesson{Session: lesson.Session, Member: number}.VMName())
	}
	for _, name := range names {
		shared.AwaitRunning(t, name)
	}
	end(t, lesson)
	for _, name := range names {
		shared.AwaitVMGone(t, name)
	}
	shared.AwaitNothingLeft(t)
}

func TestAPassEndsAGroupWhoseTimeIsUp(t *testing.T) {
	shared.Clean(t)
	lesson := session(21)
	open(t, lesson, backend.VMContainerDisk)
	if err := send(t, lesson, member(t, lesson, 1)); err != nil {
		t.Fatal(err)
	}
	shared.AwaitRunning(t, lesson.VMName())
	shared.Insert(t, lesson, -time.Second)
	shared.Pass(t, "prod", 0)
	shared.AwaitNothingLeft(t)
	if status := shared.StatusOf(t, lesson); status != "expired" {
		t.Errorf("the session is %s, want expired", status)
	}
}

func TestAGroupThatKubeVirtRefusesHalfwayIsGoneAfterAPass(t *testing.T) {
	shared.Clean(t)
	lesson := session(22)
	open(t, lesson, backend.VMContainerDisk)
	if err := send(t, lesson, member(t, lesson, 1)); err != nil {
		t.Fatal(err)
	}
	objects := member(t, lesson, 2)
	for _, object := range objects {
		if object.GetKind() == "VirtualMachine" {
			// A disk without a volume: virt-api's own webhook finds it.
			if err := unstructured.SetNestedSlice(object.Object, nil, "spec", "template", "spec", "volumes"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := send(t, lesson, objects); err == nil || backend.DenialCodes(err) == nil {
		t.Fatalf("a disk without a volume was answered with %v", err)
	}
	abandon(t, lesson)
}

func TestAGroupWhoseThirdMachineFindsNoPlaceIsGoneAfterAPass(t *testing.T) {
	shared.Clean(t)
	others := 0
	for ; others < capacity-2; others++ {
		open(t, session(200+others), backend.VMContainerDisk)
		shared.Insert(t, session(200+others), time.Hour)
	}
	lesson := session(23)
	open(t, lesson, backend.VMContainerDisk)
	if err := send(t, lesson, member(t, lesson, 1)); err != nil {
		t.Fatal(err)
	}
	stack.ExpectDenied(t, "the third machine", send(t, lesson, member(t, lesson, 2)), "CapVMs")
	abandon(t, lesson)
	for other := range others {
		shared.AwaitRunning(t, session(200+other).VMName())
	}
}

// abandon lets a pass find a session whose creation failed and that has no row, and looks that nothing of it is left.
func abandon(t *testing.T, lesson backend.Lesson) {
	t.Helper()
	shared.AwaitRunning(t, lesson.VMName())
	shared.AwaitOrphanAge(t)
	shared.Pass(t, "prod", 0)
	shared.AwaitNothingLeftOf(t, lesson)
}
