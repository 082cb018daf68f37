package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	kubevirtclient "kubevirt.io/client-go/kubevirt/typed/core/v1"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/lab"
)

// What KubeVirt does to a machine that is there: none of it is denied, and none of it makes a ghost or an orphan of the machine.

func machines() kubevirtclient.VirtualMachineInterface {
	return shared.Machines.KubevirtV1().VirtualMachines(lab.VMNamespace)
}

// alive is a session that lives and whose machine runs.
func alive(t *testing.T, n int) backend.Lesson {
	t.Helper()
	lesson := session(n)
	open(t, lesson, backend.VMContainerDisk)
	shared.Insert(t, lesson, time.Hour)
	shared.AwaitRunning(t, lesson.VMName())
	return lesson
}

// expectKept lets a pass look at everything, and checks that it leaves the session as it is.
func expectKept(t *testing.T, lesson backend.Lesson) {
	t.Helper()
	shared.AwaitOrphanAge(t)
	shared.Pass(t, "prod", 0)
	if status := shared.StatusOf(t, lesson); status != "running" {
		t.Errorf("the session is %s, want running", status)
	}
	machine, err := machines().Get(t.Context(), lesson.VMName(), metav1.GetOptions{})
	if err != nil || machine.DeletionTimestamp != nil {
		t.Errorf("the machine is going: %v", err)
	}
}

func TestAMachineIsStoppedStartedAndRestartedAndIsNoGhost(t *testing.T) {
	shared.Clean(t)
	lesson := alive(t, 40)
	name := lesson.VMName()
	if err := machines().Stop(t.Context(), name, &kubevirtv1.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.AwaitGone(t, "the instance", func(ctx context.Context) error {
		_, err := shared.Instance(ctx, name)
		return err
	})
	expectKept(t, lesson)
	if places := shared.Places(t); places != 1 {
		t.Errorf("%d places are used, want that of the stopped machine", places)
	}
	if err := machines().Start(t.Context(), name, &kubevirtv1.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "it starts", func(ctx context.Context) error {
		_, err := shared.Instance(ctx, name)
		return err
	})
	first := shared.AwaitRunning(t, name)
	before, err := shared.Instance(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := machines().Restart(t.Context(), name, &kubevirtv1.RestartOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "there is another instance", func(ctx context.Context) error {
		after, err := shared.Instance(ctx, name)
		if err == nil && after.UID == before.UID {
			err = errors.New("it is the same")
		}
		return err
	})
	second := shared.AwaitRunning(t, name)
	// What is left is counted to the one deadline of the machine, however often it starts.
	if first.Annotations[vmwarden.DeadlineAnnotation] != second.Annotations[vmwarden.DeadlineAnnotation] {
		t.Errorf("the deadlines are %v and %v", first.Annotations, second.Annotations)
	}
	if *second.Spec.ActiveDeadlineSeconds > *first.Spec.ActiveDeadlineSeconds {
		t.Errorf("the limit grew from %d to %d seconds", *first.Spec.ActiveDeadlineSeconds, *second.Spec.ActiveDeadlineSeconds)
	}
	expectKept(t, lesson)
}

// A guest that is paused is known by a condition that virt-handler writes. The call that pauses it ends at virt-handler, which is
// played.
func TestAPausedMachineIsLeftAlone(t *testing.T) {
	shared.Clean(t)
	lesson := alive(t, 41)
	config, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), kubevirt.Namespace, "kubevirt-handler")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := backend.New("", config)
	if err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "virt-handler says that it is paused", func(ctx context.Context) error {
		instance, err := shared.Instance(ctx, lesson.VMName())
		if err != nil {
			return err
		}
		instance.Status.Conditions = append(instance.Status.Conditions, kubevirtv1.VirtualMachineInstanceCondition{
			Type: kubevirtv1.VirtualMachineInstancePaused, Status: corev1.ConditionTrue, LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		})
		_, err = handler.Instances(lab.VMNamespace).Update(ctx, instance, metav1.UpdateOptions{})
		return err
	})
	shared.Await(t, "virt-controller says so of the machine", func(ctx context.Context) error {
		machine, err := machines().Get(ctx, lesson.VMName(), metav1.GetOptions{})
		if err == nil && machine.Status.PrintableStatus != kubevirtv1.VirtualMachineStatusPaused {
			err = fmt.Errorf("it is %s", machine.Status.PrintableStatus)
		}
		return err
	})
	expectKept(t, lesson)
}

// The second launcher Pod of a machine that migrates is no machine, and needs no place.
func TestAMachineMigratesWithAFullHouse(t *testing.T) {
	shared.Clean(t)
	lessons := fill(t)
	lesson := lessons[3]
	for _, l := range lessons {
		shared.Insert(t, l, time.Hour)
	}
	name := lesson.VMName()
	from := shared.AwaitRunning(t, name)
	if err := machines().Migrate(t.Context(), name, &kubevirtv1.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	var target corev1.Pod
	shared.Await(t, "a second launcher Pod", func(ctx context.Context) error {
		pods, err := shared.Launchers(ctx, name)
		for _, pod := range pods {
			if pod.UID != from.UID {
				target = pod
				return nil
			}
		}
		return errors.Join(errors.New("there is none"), err)
	})
	if limit := target.Spec.ActiveDeadlineSeconds; limit == nil || *limit > *from.Spec.ActiveDeadlineSeconds {
		t.Errorf("the second launcher Pod's limit is %v seconds, the first one's %d", limit, *from.Spec.ActiveDeadlineSeconds)
	}
	expectKept(t, lesson)
	shared.Await(t, "the machine runs at its target", func(ctx context.Context) error {
		instance, err := shared.Instance(ctx, name)
		if err == nil && (instance.Status.NodeName == from.Spec.NodeName || instance.Status.MigrationState == nil || !instance.Status.MigrationState.Completed) {
			err = fmt.Errorf("it is on %s: %+v", instance.Status.NodeName, instance.Status.MigrationState)
		}
		return err
	})
	expectKept(t, lesson)
	if places := shared.Places(t); places != capacity {
		t.Errorf("%d places are used, want %d", places, capacity)
	}
}

func TestASnapshotIsTakenAndRestored(t *testing.T) {
	shared.Clean(t)
	lesson := alive(t, 42)
	name := lesson.VMName()
	if err := machines().Stop(t.Context(), name, &kubevirtv1.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.AwaitGone(t, "the instance", func(ctx context.Context) error {
		_, err := shared.Instance(ctx, name)
		return err
	})
	of := map[string]any{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}
	makeReady(t, "VirtualMachineSnapshot", "virtualmachinesnapshots", map[string]any{"source": of}, "readyToUse")
	// The memory is what a restore brings back; the marks are not for it to change.
	patch := []byte(`{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"5Gi"},"resources":{"requests":{"memory":"5Gi"}}}}}}}`)
	if _, err := machines().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	makeReady(t, "VirtualMachineRestore", "virtualmachinerestores", map[string]any{"target": of, "virtualMachineSnapshotName": "saved"}, "complete")
	machine, err := machines().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if guest := machine.Spec.Template.Spec.Domain.Memory.Guest.String(); guest != "4Gi" {
		t.Errorf("the restored machine has %s, want 4Gi", guest)
	}
	if machine.Annotations[vmwarden.DeadlineAnnotation] == "" || machine.Labels["ttlab.io/session"] != lesson.Session {
		t.Errorf("the restored machine is marked %v and %v", machine.Labels, machine.Annotations)
	}
	expectKept(t, lesson)
}

// makeReady makes an object called saved, and waits until its status says that it is done.
func makeReady(t *testing.T, kind, plural string, spec map[string]any, done string) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: plural}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": "saved"}, "spec": spec,
	}}
	namespaced := shared.Objects.Resource(resource).Namespace(lab.VMNamespace)
	if _, err := namespaced.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "the "+kind+" is done", func(ctx context.Context) error {
		found, err := namespaced.Get(ctx, "saved", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is, _, _ := unstructured.NestedBool(found.Object, "status", done); !is {
			return fmt.Errorf("its status is %v", found.Object["status"])
		}
		return nil
	})
}

func TestLabelsOfATemplateMayChangeAndALabsOwnMayNot(t *testing.T) {
	shared.Clean(t)
	lesson := alive(t, 43)
	name := lesson.VMName()
	launcher := shared.AwaitRunning(t, name)
	label := []byte(`{"spec":{"template":{"metadata":{"labels":{"course":"linux-2"}}}}}`)
	if _, err := machines().Patch(t.Context(), name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatalf("a label that is none of ours: %v", err)
	}
	entitle(t, schema.GroupVersionResource{Group: "kubevirt.io", Resource: "virtualmachines"})
	own := []byte(`{"spec":{"template":{"metadata":{"labels":{"ttlab.io/env":"dev"}}}}}`)
	var refusal error
	shared.Await(t, "the right to patch", func(ctx context.Context) error {
		_, refusal = shared.Backends["prod"].Machines(lab.VMNamespace).Patch(ctx, name, types.MergePatchType, own, metav1.PatchOptions{})
		if backend.DenialCodes(refusal) == nil {
			return fmt.Errorf("not by us: %w", refusal)
		}
		return nil
	})
	if codes := backend.DenialCodes(refusal); codes[0] != "EnvironmentMismatch" && codes[0] != "EnvironmentImmutable" {
		t.Errorf("changing the environment is denied by %v", codes)
	}
	// The instance keeps what it started with.
	if now := shared.AwaitRunning(t, name); now.UID != launcher.UID || now.Labels["ttlab.io/env"] != "prod" {
		t.Errorf("the launcher Pod is another, or of another environment: %v", now.Labels)
	}
	expectKept(t, lesson)
}

func TestKubeVirtsServersMayBeStartedAgainAtAnyTime(t *testing.T) {
	shared.Clean(t)
	lesson := session(44)
	if err := shared.KubeVirt.StopController(); err != nil {
		t.Fatal(err)
	}
	open(t, lesson, backend.VMContainerDisk)
	shared.Insert(t, lesson, time.Hour)
	// A machine that waits for virt-controller is there, and so no ghost.
	expectKept(t, lesson)
	if err := shared.KubeVirt.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared.AwaitRunning(t, lesson.VMName())
	if err := shared.KubeVirt.StopAPI(); err != nil {
		t.Fatal(err)
	}
	// KubeVirt's own webhook fails closed. That ours reserved a place for a create that failed costs it until the reservation lapses.
	other := session(45)
	if _, err := shared.Backends["prod"].Open(t.Context(), other.Session, backend.VMContainerDisk); err == nil {
		t.Error("a machine was admitted that virt-api did not look at")
	}
	end(t, lesson)
	if err := shared.KubeVirt.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared.AwaitVMGone(t, lesson.VMName())
	shared.Await(t, "a machine is admitted again", func(ctx context.Context) error {
		_, err := shared.Backends["prod"].Create(ctx, backend.VMContainerDisk, other)
		return err
	})
	shared.AwaitRunning(t, other.VMName())
}

// KubeVirt's operator has every stored object written anew, unchanged, when the stored version changes.
func TestStoredObjectsAreWrittenAnewAlsoWhileNobodyOfOursAnswers(t *testing.T) {
	shared.Clean(t)
	lesson := alive(t, 46)
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(stack.After(t), lab.Config, 1); err != nil {
			t.Fatal(err)
		}
	})
	config, err := shared.ControlPlane.UserConfig("system:serviceaccount:kubevirt:kubevirt-operator", "system:serviceaccounts")
	if err != nil {
		t.Fatal(err)
	}
	grantAll(t, "system:serviceaccount:kubevirt:kubevirt-operator")
	operator, err := backend.New("", config)
	if err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "the operator writes the machine anew", func(ctx context.Context) error {
		machine, err := operator.Machines(lab.VMNamespace).Get(ctx, lesson.VMName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = operator.Machines(lab.VMNamespace).Update(ctx, machine, metav1.UpdateOptions{})
		return err
	})
	shared.Await(t, "the operator writes the instance anew", func(ctx context.Context) error {
		instance, err := operator.Instances(lab.VMNamespace).Get(ctx, lesson.VMName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = operator.Instances(lab.VMNamespace).Update(ctx, instance, metav1.UpdateOptions{})
		return err
	})
}
