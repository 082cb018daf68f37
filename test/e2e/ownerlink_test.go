package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func secret(ctx context.Context, t *testing.T, name string) (*corev1.Secret, error) {
	t.Helper()
	return clients(t).CoreV1().Secrets(lab.VMNamespace).Get(ctx, name, metav1.GetOptions{})
}

// awaitOwners waits until the Secret's owners are these virtual machines, by name, under their live UIDs.
func awaitOwners(t *testing.T, secretName string, machines ...string) {
	t.Helper()
	want := []metav1.OwnerReference{}
	for _, name := range machines {
		want = append(want, metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: name, UID: machine(t, name).UID})
	}
	await(t, "the owners of Secret "+secretName, func(ctx context.Context) error {
		found, err := secret(ctx, t, secretName)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, found.OwnerReferences); diff != "" {
			return fmt.Errorf("owners (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestASecretIsLinkedToItsMachineAndGoesWithIt(t *testing.T) {
	clean(t)
	session := sessionID('8', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	awaitOwners(t, name+"-cloudinit", name)
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the Secret goes with its machine", func(ctx context.Context) error {
		_, err := secret(ctx, t, name+"-cloudinit")
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
}

func TestALateSecretIsLinkedAndOneThatTwoMachinesShareHasTwoOwners(t *testing.T) {
	clean(t)
	session := sessionID('8', 2)
	lesson := backend.Lesson{Session: session, Environment: "prod"}
	prod := shared.Backends["prod"]
	shares := lesson.VMName() + "-cloudinit"
	for _, name := range []string{lesson.VMName(), lesson.VMName() + "-x"} {
		o := object(t, backend.VMContainerDisk, lesson, func(o *unstructured.Unstructured) { o.SetName(name) })
		if _, err := prod.CreateObject(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := prod.Create(t.Context(), backend.CloudInitSecret, lesson); err != nil {
		t.Fatal(err)
	}
	awaitOwners(t, shares, lesson.VMName(), lesson.VMName()+"-x")
}

func TestAStaleOwnerIsReplacedAndAForeignOneKept(t *testing.T) {
	clean(t)
	session := sessionID('8', 3)
	lesson := backend.Lesson{Session: session, Environment: "prod"}
	keeper, err := clients(t).CoreV1().ConfigMaps(lab.VMNamespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keeper"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients(t).CoreV1().ConfigMaps(lab.VMNamespace).Delete(contextAfter(t), "keeper", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: keeper.Name, UID: keeper.UID}
	stale := metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: lesson.VMName(), UID: "00000000-0000-4000-8000-000000000000"}
	// As a restored backup brings it. The second owner, which lives, keeps the garbage collector from it meanwhile.
	restored := object(t, backend.CloudInitSecret, lesson, func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{foreign, stale})
	})
	if _, err := shared.AdminBackend.CreateObject(t.Context(), restored, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Backends["prod"].Create(t.Context(), backend.VMContainerDisk, lesson); err != nil {
		t.Fatal(err)
	}
	live := machine(t, lesson.VMName())
	want := []metav1.OwnerReference{foreign, {APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: live.Name, UID: live.UID}}
	var linked *corev1.Secret
	await(t, "the stale owner is replaced", func(ctx context.Context) error {
		var err error
		if linked, err = secret(ctx, t, lesson.VMName()+"-cloudinit"); err != nil {
			return err
		}
		// The garbage collector, too, takes a dead owner off where another lives; the order then differs.
		if diff := cmp.Diff(want, linked.OwnerReferences); diff != "" {
			return fmt.Errorf("owners (-want +got):\n%s", diff)
		}
		return nil
	})
	// A second reconcile writes nothing: touching the machine makes one, and the Secret of another session shows that it is over.
	touch(t, live.Name)
	open(t, "prod", sessionID('8', 4))
	other := backend.Lesson{Session: sessionID('8', 4)}.VMName()
	awaitOwners(t, other+"-cloudinit", other)
	after, err := secret(t.Context(), t, linked.Name)
	if err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != linked.ResourceVersion {
		t.Errorf("the Secret was written again: %s, then %s", linked.ResourceVersion, after.ResourceVersion)
	}
}

// touch changes a virtual machine in a way that concerns nobody.
func touch(t *testing.T, name string) {
	t.Helper()
	found := machine(t, name)
	found.Annotations["lab.test/touched"] = "yes"
	if _, err := shared.AdminBackend.Machines(lab.VMNamespace).Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestNoLinkCrossesSessionsOrEnvironments(t *testing.T) {
	clean(t)
	session := sessionID('8', 5)
	lesson := backend.Lesson{Session: session, Environment: "prod"}
	// dev has a Secret of that very name and session; an admin, whom the rules let, makes prod's machine name it.
	if _, err := shared.Backends["dev"].Create(t.Context(), backend.CloudInitSecret, backend.Lesson{Session: session, Environment: "dev"}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.AdminBackend.Create(t.Context(), backend.VMContainerDisk, lesson); err != nil {
		t.Fatal(err)
	}
	// The controller has been past it when it has linked a session that came after.
	open(t, "prod", sessionID('8', 6))
	other := backend.Lesson{Session: sessionID('8', 6)}.VMName()
	awaitOwners(t, other+"-cloudinit", other)
	found, err := secret(t.Context(), t, lesson.VMName()+"-cloudinit")
	if err != nil {
		t.Fatal(err)
	}
	if len(found.OwnerReferences) != 0 {
		t.Errorf("dev's Secret has the owners %v", found.OwnerReferences)
	}
}

func TestAGroupGoesWithItsLead(t *testing.T) {
	clean(t)
	session := sessionID('8', 7)
	open(t, "prod", session)
	lead := backend.Lesson{Session: session}.VMName()
	for member := 1; member <= 2; member++ {
		_, err := shared.Backends["prod"].Create(t.Context(), backend.GroupMember, backend.Lesson{Session: session, Environment: "prod", Member: member})
		if err != nil && !(member == 2 && apierrors.IsAlreadyExists(err)) {
			t.Fatal(err)
		}
		name := backend.Lesson{Session: session, Member: member}.VMName()
		owners := machine(t, name).OwnerReferences
		if len(owners) != 1 || owners[0].Name != lead || owners[0].UID != machine(t, lead).UID {
			t.Errorf("owners of member %s = %v, want the lead", name, owners)
		}
		awaitOwners(t, name+"-cloudinit", name)
	}
	awaitOwners(t, lead+"-cloudinit", lead)
	await(t, "Service and NetworkPolicy are linked", func(ctx context.Context) error {
		service, err := clients(t).CoreV1().Services(lab.VMNamespace).Get(ctx, lead, metav1.GetOptions{})
		if err != nil {
			return err
		}
		policy, err := clients(t).NetworkingV1().NetworkPolicies(lab.VMNamespace).Get(ctx, lead, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(service.OwnerReferences) != 1 || len(policy.OwnerReferences) != 1 {
			return fmt.Errorf("owners: %v and %v", service.OwnerReferences, policy.OwnerReferences)
		}
		return nil
	})
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), lead, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "all that the session had is gone", func(ctx context.Context) error {
		return nothingLeft(ctx, t)
	})
}

// nothingLeft is an error while a lab object of the VM namespace is left.
func nothingLeft(ctx context.Context, t *testing.T) error {
	t.Helper()
	selector := metav1.ListOptions{LabelSelector: "ttlab.io/session"}
	machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, selector)
	if err != nil {
		return err
	}
	secrets, err := clients(t).CoreV1().Secrets(lab.VMNamespace).List(ctx, selector)
	if err != nil {
		return err
	}
	services, err := clients(t).CoreV1().Services(lab.VMNamespace).List(ctx, selector)
	if err != nil {
		return err
	}
	policies, err := clients(t).NetworkingV1().NetworkPolicies(lab.VMNamespace).List(ctx, selector)
	if err != nil {
		return err
	}
	if n := len(machines.Items) + len(secrets.Items) + len(services.Items) + len(policies.Items); n > 0 {
		return fmt.Errorf("%d virtual machines, %d Secrets, %d Services, %d NetworkPolicies", len(machines.Items), len(secrets.Items), len(services.Items), len(policies.Items))
	}
	return nil
}
