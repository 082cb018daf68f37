package controlplane

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
)

// How the controllers are seen to be at work: each is given something to do, and is ready when it has done it. A health endpoint
// says only that they were started: garbage collector and quota do nothing before they have listed every resource that there is.

const workName = "vmwarden-test-ready"

// giveWork leaves a Secret whose owner never was, for the garbage collector, and a quota on VMs to count.
func giveWork(ctx context.Context, client kubernetes.Interface) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: workName,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: workName, UID: uuid.NewUUID()},
		},
	}}
	_, err := client.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating work for the garbage collector: %w", err)
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: workName},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/virtualmachines.kubevirt.io": resource.MustParse("1000"),
		}},
	}
	_, err = client.CoreV1().ResourceQuotas(metav1.NamespaceDefault).Create(ctx, quota, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating work for the quota controller: %w", err)
	}
	return nil
}

// workDone succeeds when the work is done, and then takes away what is left of it.
func workDone(ctx context.Context, client kubernetes.Interface) error {
	core := client.CoreV1()
	if _, err := core.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("waiting for the ServiceAccount controller: %w", err)
	}
	if _, err := core.ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("waiting for the root CA publisher: %w", err)
	}
	switch _, err := core.Secrets(metav1.NamespaceDefault).Get(ctx, workName, metav1.GetOptions{}); {
	case err == nil:
		return errors.New("waiting for the garbage collector")
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("waiting for the garbage collector: %w", err)
	}
	quota, err := core.ResourceQuotas(metav1.NamespaceDefault).Get(ctx, workName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("waiting for the quota controller: %w", err)
	}
	if len(quota.Status.Used) == 0 {
		return errors.New("waiting for the quota controller")
	}
	if err := core.ResourceQuotas(metav1.NamespaceDefault).Delete(ctx, workName, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("removing the work of the quota controller: %w", err)
	}
	return nil
}
