package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// kubevirtController is the account under which virt-controller makes instances and launcher Pods.
const kubevirtController = "system:serviceaccount:kubevirt:kubevirt-controller"

func as(t *testing.T, user string) *rest.Config {
	t.Helper()
	config, err := shared.ControlPlane.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// launcherPod is the Pod that virt-controller makes, with the annotations that the virtual machine's template hands down.
func launcherPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{"kubevirt.io": "virt-launcher", "ttlab.io/session": sessionID('9', 1), "ttlab.io/env": "prod", "ttlab.io/lab": "true"},
			Annotations: annotations,
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "compute", Image: "registry.lab.internal/launcher:1"}}},
	}
}

func launchers(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	grant(t, "launchers", corev1.GroupName, "pods")
	set := typed(t, as(t, kubevirtController))
	await(t, "the right to create Pods", func(ctx context.Context) error {
		_, err := set.CoreV1().Pods(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		return err
	})
	t.Cleanup(func() {
		err := clients(t).CoreV1().Pods(lab.VMNamespace).DeleteCollection(contextAfter(t), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return set
}

func TestALauncherPodRunsUntilItsMachinesDeadlineAndNoneStartsAfterIt(t *testing.T) {
	clean(t)
	pods := launchers(t).CoreV1().Pods(lab.VMNamespace)
	for name, c := range map[string]struct {
		left time.Duration
		sent *int64
	}{
		"without a limit": {30 * time.Minute, nil}, "with a longer one": {30 * time.Minute, new(int64(999999))},
	} {
		deadline := time.Now().Add(c.left)
		pod := launcherPod("launcher", map[string]string{vmwarden.DeadlineAnnotation: vmwarden.FormatDeadline(deadline)})
		pod.Spec.ActiveDeadlineSeconds = c.sent
		stored, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		limit := stored.Spec.ActiveDeadlineSeconds
		if limit == nil || *limit > 1801 || *limit < 1800-int64(time.Since(deadline.Add(-c.left)).Seconds())-1 {
			t.Errorf("%s: activeDeadlineSeconds = %v, want what is left of 1800", name, limit)
		}
	}
	late := launcherPod("late", map[string]string{vmwarden.DeadlineAnnotation: "2026-01-01T00:00:00Z"})
	_, err := pods.Create(t.Context(), late, metav1.CreateOptions{})
	expectDenied(t, "a launcher Pod past the deadline", err, "DeadlinePassed")

	// A machine from before vmwarden hands down no deadline; KubeVirt is not to be kept from it.
	stored, err := pods.Create(t.Context(), launcherPod("legacy", nil), metav1.CreateOptions{})
	if err != nil || stored.Spec.ActiveDeadlineSeconds != nil {
		t.Errorf("a launcher Pod without a deadline: %v, limit %v", err, stored.Spec.ActiveDeadlineSeconds)
	}
}

func TestAForgedLauncherPodIsALabsPodLikeAnyOther(t *testing.T) {
	clean(t)
	grant(t, "anypods", corev1.GroupName, "pods")
	config, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "ttlab-prod", "backend")
	if err != nil {
		t.Fatal(err)
	}
	var stored *corev1.Pod
	await(t, "the right to create Pods", func(ctx context.Context) error {
		forged := launcherPod("forged", map[string]string{vmwarden.DeadlineAnnotation: "2100-01-01T00:00:00Z"})
		stored, err = typed(t, config).CoreV1().Pods(lab.VMNamespace).Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if limit := stored.Spec.ActiveDeadlineSeconds; limit == nil || *limit != 11700 {
		t.Errorf("activeDeadlineSeconds = %v, want 11700", limit)
	}
}

func TestKubeVirtsOwnWritesPassAlsoWithEveryReplicaDown(t *testing.T) {
	clean(t)
	grantPatch(t)
	open(t, "prod", sessionID('9', 2))
	name := backend.Lesson{Session: sessionID('9', 2)}.VMName()
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	controller, err := backend.New("", as(t, kubevirtController))
	if err != nil {
		t.Fatal(err)
	}
	machines := controller.Machines(lab.VMNamespace)
	for _, patch := range []string{
		`{"metadata":{"finalizers":["kubevirt.io/virtualMachineControllerFinalize"]}}`,
		`{"metadata":{"annotations":{"kubevirt.io/latest-observed-api-version":"v1"}}}`,
		`{"metadata":{"finalizers":[]}}`,
	} {
		await(t, "virt-controller writes "+patch, func(ctx context.Context) error {
			_, err := machines.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	if _, err := machines.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"created":true}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("virt-controller writes the status: %v", err)
	}
	if err := machines.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("virt-controller deletes: %v", err)
	}
}

// What section 4.5 of the design lists: none of it may depend on us.
func TestWithEveryReplicaDownTheClusterGoesOn(t *testing.T) {
	clean(t)
	session := sessionID('9', 3)
	open(t, "prod", session)
	for member := 1; member <= 1; member++ {
		if _, err := shared.Backends["prod"].Create(t.Context(), backend.GroupMember, backend.Lesson{Session: session, Environment: "prod", Member: member}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := shared.Backends["prod"].Create(t.Context(), backend.LabPod, backend.Lesson{Session: sessionID('9', 4), Environment: "prod"}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	core := clients(t).CoreV1()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.lab.internal/x:1"}}}}
	for _, namespace := range []string{lab.VMNamespace, lab.PodNamespace, "vmwarden", "kube-system"} {
		if _, err := core.Pods(namespace).Create(t.Context(), pod.DeepCopy(), metav1.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "serviceaccount") {
			t.Errorf("a Pod that is no launcher, in %s: %v", namespace, err)
		}
		if err := core.Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting it from %s: %v", namespace, err)
		}
	}
	for name, kind := range map[string]corev1.SecretType{"sh.helm.release.v1.vmwarden.v1": "helm.sh/release.v1", "second-webhook-tls": corev1.SecretTypeOpaque} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}
		for _, namespace := range []string{lab.VMNamespace, "vmwarden"} {
			if _, err := core.Secrets(namespace).Create(t.Context(), secret.DeepCopy(), metav1.CreateOptions{}); err != nil {
				t.Errorf("Secret %s in %s: %v", name, namespace, err)
			}
			if err := core.Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("deleting Secret %s from %s: %v", name, namespace, err)
			}
		}
	}
	// A node drain, or the kubelet, deletes a lab's Pod: whoever RBAC lets.
	if err := core.Pods(lab.PodNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
		t.Errorf("deleting the lab's Pod: %v", err)
	}
	// The reaper ends the session with all that it has, while nobody answers.
	insert(t, "prod", expired(session))
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, 0)
	await(t, "nothing is left", func(ctx context.Context) error { return nothingLeft(ctx, t) })
}

// A namespace goes when these two may delete what is in it. The lab's own has to stay, so each asks for one object, dry.
func TestWithEveryReplicaDownNamespaceControllerAndCollectorMayDelete(t *testing.T) {
	clean(t)
	open(t, "prod", sessionID('9', 5))
	name := backend.Lesson{Session: sessionID('9', 5)}.VMName()
	grantPatch(t)
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	for _, account := range []string{"namespace-controller", "generic-garbage-collector"} {
		controller, err := backend.New("", as(t, "system:serviceaccount:kube-system:"+account))
		if err != nil {
			t.Fatal(err)
		}
		await(t, account+" may delete", func(ctx context.Context) error {
			return controller.Machines(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		})
	}
}

func TestATerminatingMachineLosesItsFinalizersWhoeverAsksButNotItsEnvironment(t *testing.T) {
	clean(t)
	grantPatch(t)
	open(t, "prod", sessionID('9', 6))
	name := backend.Lesson{Session: sessionID('9', 6)}.VMName()
	setFinalizers(t, name, "lab.test/held")
	t.Cleanup(func() { setFinalizers(t, name) })
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stranger, err := backend.New("", as(t, "somebody"))
	if err != nil {
		t.Fatal(err)
	}
	machines := stranger.Machines(lab.VMNamespace)
	var refusal error
	await(t, "the right to patch", func(ctx context.Context) error {
		_, refusal = machines.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":[],"labels":{"ttlab.io/env":"dev"}}}`), metav1.PatchOptions{})
		return expectReview(refusal)
	})
	expectDenied(t, "dropping the finalizers and the environment", refusal, "EnvironmentImmutable")
	if _, err := machines.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("dropping the finalizers alone: %v", err)
	}
	await(t, "the machine is gone", func(context.Context) error {
		if exists(t, name) {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}
