package install_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/chart"
)

// resourceOf asks the API server what a kind's resource is called.
func resourceOf(object *unstructured.Unstructured) (resource schema.GroupVersionResource, namespaced bool, err error) {
	groups, err := restmapper.GetAPIGroupResources(clients.Discovery())
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, false, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func waiting(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
}

func TestWithEveryReplicaDownTheClusterGoesOn(t *testing.T) {
	ctx := t.Context()
	create(t, "e0000000-0000-4000-8000-000000000001")
	scale(t, 0)
	if _, err := prod.Create(ctx, backend.VMContainerDisk, backend.Lesson{Session: "e0000000-0000-4000-8000-000000000002", Environment: "prod"}); err == nil {
		t.Error("a machine was created unjudged: the replicas are not down, and nothing below shows anything")
	}
	for _, namespace := range []string{metav1.NamespaceSystem, ownNamespace} {
		if _, err := clients.CoreV1().Pods(namespace).Create(ctx, waiting("outsider"), metav1.CreateOptions{}); err != nil {
			t.Errorf("a Pod in %s: %v", namespace, err)
		}
	}
	if _, err := clients.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"agent": "yes"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"agent": "yes"}}, Spec: waiting("x").Spec},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	await(t, "the DaemonSet has its Pod", func(ctx context.Context) error {
		pods, err := clients.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "agent"})
		if err == nil && len(pods.Items) == 0 {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	if _, err := clients.CoreV1().Secrets(ownNamespace).Update(ctx, certificateSecret(t), metav1.UpdateOptions{}); err != nil {
		t.Errorf("the certificate's Secret: %v", err)
	}
	if err := prod.Machines(vmNamespace).Delete(ctx, "lab-e0000000", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a delete in the own environment: %v", err)
	}
	if err := clients.CoreV1().Namespaces().Delete(ctx, podNamespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	await(t, "the guarded namespace is gone", func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, podNamespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
	// Helm writes its release Secret first: an upgrade is the way back.
	if _, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: podNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	install(t)
	awaitReplicas(t, 2)
}

func TestAfterTheUninstallationNothingIsInTheWay(t *testing.T) {
	ctx := t.Context()
	if _, err := helm.Uninstall(ctx, chart.Release{Name: "vmwarden", Namespace: ownNamespace}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Pods(vmNamespace).Create(ctx, waiting("after"), metav1.CreateOptions{}); err != nil {
		t.Errorf("a Pod: %v", err)
	}
	lesson := backend.Lesson{Session: "f0000000-0000-4000-8000-000000000001", Environment: "prod"}
	created, err := prod.Create(ctx, backend.VMContainerDisk, lesson)
	if err != nil {
		t.Fatalf("a machine: %v", err)
	}
	if annotations := created[0].GetAnnotations(); len(annotations) > 0 {
		t.Errorf("it is still stamped: %v", annotations)
	}
	var left []string
	for _, namespace := range []string{ownNamespace, vmNamespace, podNamespace} {
		maps, err := clients.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		roles, err := clients.RbacV1().Roles(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=vmwarden"})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range maps.Items {
			if found.Name != "kube-root-ca.crt" {
				left = append(left, found.Namespace+"/"+found.Name)
			}
		}
		for _, found := range roles.Items {
			left = append(left, found.Namespace+"/"+found.Name)
		}
	}
	// The ledger is made by the webhook; docs/install.md says how to remove it.
	if !slices.Equal(left, []string{"lab-vms/vmwarden-ledger"}) {
		t.Errorf("left behind: %v", left)
	}
}
