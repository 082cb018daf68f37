package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/lab"
)

var (
	instances   = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	replicaSets = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancereplicasets"}
	pools       = schema.GroupVersionResource{Group: "pool.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinepools"}
)

// around is an object that runs machines without being a VirtualMachine, with the marks of a lesson.
func around(t *testing.T, lesson backend.Lesson, apiVersion, kind, name string, replicas int64) *unstructured.Unstructured {
	t.Helper()
	machines, err := backend.Objects(backend.VMContainerDisk, lesson)
	if err != nil {
		t.Fatal(err)
	}
	machine := machines[0]
	template, _, err := unstructured.NestedMap(machine.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{}
	for key, value := range machine.GetLabels() {
		labels[key] = value
	}
	template["metadata"] = map[string]any{"labels": labels}
	selector := map[string]any{"matchLabels": labels}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	object.SetNamespace(lab.VMNamespace)
	object.SetName(name)
	object.SetLabels(machine.GetLabels())
	switch kind {
	case "VirtualMachineInstance":
		object.Object["spec"] = template["spec"]
	case "VirtualMachineInstanceReplicaSet":
		object.Object["spec"] = map[string]any{"replicas": replicas, "selector": selector, "template": template}
	case "VirtualMachinePool":
		object.Object["spec"] = map[string]any{"replicas": replicas, "selector": selector, "virtualMachineTemplate": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"runStrategy": "Always", "template": template},
		}}
	}
	return object
}

// entitle lets RBAC stand in nobody's way, so that what refuses is us.
func entitle(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "around-" + resource.Resource},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ttlab-prod", Name: "backend"}},
	}
	rights := shared.Clients.RbacV1()
	if _, err := rights.Roles(lab.VMNamespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rights.RoleBindings(lab.VMNamespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.AwaitAccess(t.Context(), shared.Clients, true, "system:serviceaccount:ttlab-prod:backend", authorizationv1.ResourceAttributes{
		Namespace: lab.VMNamespace, Verb: "create", Group: resource.Group, Resource: resource.Resource,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := stack.After(t)
		err := errors.Join(rights.Roles(lab.VMNamespace).Delete(ctx, role.Name, metav1.DeleteOptions{}),
			rights.RoleBindings(lab.VMNamespace).Delete(ctx, role.Name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	})
}

func TestABackendCannotRunInstancesAroundItsMachines(t *testing.T) {
	shared.Clean(t)
	for _, c := range []struct {
		apiVersion, kind string
		resource         schema.GroupVersionResource
	}{
		{"kubevirt.io/v1", "VirtualMachineInstance", instances},
		{"kubevirt.io/v1", "VirtualMachineInstanceReplicaSet", replicaSets},
		{"pool.kubevirt.io/v1beta1", "VirtualMachinePool", pools},
	} {
		entitle(t, c.resource)
		var refusal error
		shared.Await(t, "the right to create a "+c.kind, func(ctx context.Context) error {
			_, refusal = shared.Backends["prod"].CreateObject(ctx, around(t, session(30), c.apiVersion, c.kind, "around", 1), metav1.CreateOptions{})
			if refusal == nil || backend.DenialCodes(refusal) == nil {
				return fmt.Errorf("not by us: %w", refusal)
			}
			return nil
		})
		stack.ExpectDenied(t, c.kind, refusal, "InstanceDirect")
	}
}

// What an admin, or somebody before the installation, ran around a machine is seen all the same.
func TestAnInstanceWithoutAMachineHoldsAPlaceUntilAPassFindsIt(t *testing.T) {
	shared.Clean(t)
	lesson := session(31)
	name := "around"
	if _, err := shared.AdminBackend.Create(t.Context(), backend.CloudInitSecret, lesson); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.AdminBackend.CreateObject(t.Context(), around(t, lesson, "kubevirt.io/v1", "VirtualMachineInstance", name, 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.AwaitRunning(t, name)
	if places := shared.Places(t); places != 1 {
		t.Errorf("%d places are used, want that of the instance", places)
	}
	shared.AwaitOrphanAge(t)
	shared.Pass(t, "prod", 0)
	shared.AwaitVMGone(t, name)
	shared.AwaitNothingLeft(t)
	if places := shared.Places(t); places != 0 {
		t.Errorf("%d places are used, want none", places)
	}
}

func TestADeletionThatWouldLeaveTheInstanceRunningIsDenied(t *testing.T) {
	shared.Clean(t)
	lesson := session(32)
	open(t, lesson, backend.VMContainerDisk)
	shared.AwaitRunning(t, lesson.VMName())
	orphan := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}
	for who, machines := range map[string]*backend.Backend{"the backend": shared.Backends["prod"], "an admin": shared.AdminBackend} {
		err := machines.Machines(lab.VMNamespace).Delete(t.Context(), lesson.VMName(), orphan)
		stack.ExpectDenied(t, "an orphaning deletion by "+who, err, "OrphaningDelete")
	}
}

// The registration taken away stands for a time before the installation: no rule of ours saw the deletion.
func TestAnInstanceThatWasOrphanedUnseenIsCountedAndReaped(t *testing.T) {
	shared.Clean(t)
	lesson := session(33)
	open(t, lesson, backend.VMContainerDisk)
	shared.AwaitRunning(t, lesson.VMName())
	unregistered(t, func() {
		orphan := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}
		if err := shared.AdminBackend.Machines(lab.VMNamespace).Delete(t.Context(), lesson.VMName(), orphan); err != nil {
			t.Fatal(err)
		}
	})
	shared.AwaitGone(t, "the machine", func(ctx context.Context) error {
		_, err := shared.AdminBackend.Machines(lab.VMNamespace).Get(ctx, lesson.VMName(), metav1.GetOptions{})
		return err
	})
	instance, err := shared.Instance(t.Context(), lesson.VMName())
	if err != nil || instance.DeletionTimestamp != nil || len(instance.OwnerReferences) > 0 {
		t.Fatalf("the instance does not run on without an owner: %v (%v)", instance.OwnerReferences, err)
	}
	if places := shared.Places(t); places != 1 {
		t.Errorf("%d places are used, want that of the instance", places)
	}
	shared.AwaitOrphanAge(t)
	shared.Pass(t, "prod", 0)
	shared.AwaitVMGone(t, lesson.VMName())
}

func TestAPoolThatIsScaledPastTheCapStopsAtIt(t *testing.T) {
	shared.Clean(t)
	lesson := backend.Lesson{Session: session(34).Session}
	pool := around(t, lesson, "pool.kubevirt.io/v1beta1", "VirtualMachinePool", "pool", 2)
	// The session's own cap is not what is looked at.
	unmark(t, pool)
	if _, err := shared.AdminBackend.CreateObject(t.Context(), pool, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitMachines(t, 2)
	scale(t, 20)
	awaitMachines(t, capacity)
	shared.Await(t, "the pool says that it could not have more", func(ctx context.Context) error {
		found, err := shared.Objects.Resource(pools).Namespace(lab.VMNamespace).Get(ctx, "pool", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(found.Object, "status", "conditions")
		if err != nil || !strings.Contains(fmt.Sprint(conditions), "denied the request: Cap") {
			return errors.Join(fmt.Errorf("its conditions are %v", conditions), err)
		}
		return nil
	})
	// By now it was denied twelve times over, and tries again with longer and longer pauses.
	if count := len(machinesOf(t)); count != capacity {
		t.Errorf("there are %d machines, want %d", count, capacity)
	}
	// Down again nothing of ours is in its way. How far it comes at once is KubeVirt's affair: where its cache was a machine behind, it
	// rests one short of it until an expectation of its own is five minutes old.
	scale(t, 3)
	shared.Await(t, "the pool takes machines away", func(context.Context) error {
		if count := len(machinesOf(t)); count >= capacity {
			return fmt.Errorf("there are %d", count)
		}
		return nil
	})
}

func scale(t *testing.T, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := shared.Objects.Resource(pools).Namespace(lab.VMNamespace).Patch(t.Context(), "pool", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func machinesOf(t *testing.T) []kubevirtv1.VirtualMachine {
	t.Helper()
	list, err := shared.AdminBackend.Machines(lab.VMNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func awaitMachines(t *testing.T, number int) {
	t.Helper()
	shared.Await(t, fmt.Sprintf("there are %d machines", number), func(context.Context) error {
		if count := len(machinesOf(t)); count != number {
			return fmt.Errorf("there are %d", count)
		}
		return nil
	})
}

// unmark takes a lab's labels from a pool and what it makes; its own selector stays.
func unmark(t *testing.T, pool *unstructured.Unstructured) {
	t.Helper()
	labels := map[string]any{"pool": pool.GetName()}
	for _, path := range [][]string{
		{"spec", "selector", "matchLabels"},
		{"spec", "virtualMachineTemplate", "metadata", "labels"},
		{"spec", "virtualMachineTemplate", "spec", "template", "metadata", "labels"},
	} {
		if err := unstructured.SetNestedMap(pool.Object, labels, path...); err != nil {
			t.Fatal(err)
		}
	}
	pool.SetLabels(nil)
}

// unregistered takes our webhooks away while work is done, and waits until the API server has noticed.
func unregistered(t *testing.T, work func()) {
	t.Helper()
	if err := shared.Webhook.Unregister(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Register(stack.After(t)); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	})
	work()
	if err := shared.Webhook.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
}
