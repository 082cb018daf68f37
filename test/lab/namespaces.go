package lab

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/backend"
)

//go:embed manifests/rbac-pods.yaml
var podRights []byte

// createNamespaces makes the namespaces, the backends with their rights, the golden disk, and what the chart installs.
func (l *Lab) createNamespaces(ctx context.Context) error {
	clients, err := l.Clients()
	if err != nil {
		return err
	}
	namespaces := []string{VMNamespace, PodNamespace, ownNamespace}
	for _, environment := range Environments {
		namespaces = append(namespaces, "ttlab-"+environment)
	}
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	for _, environment := range Environments {
		if err := createAccount(ctx, clients, "ttlab-"+environment, "backend"); err != nil {
			return err
		}
	}
	admin, err := backend.New("", l.Admin)
	if err != nil {
		return err
	}
	for _, file := range []string{backend.RBAC, backend.GoldenPVC} {
		if _, err := admin.Create(ctx, file, backend.Lesson{}); err != nil {
			return fmt.Errorf("creating %s: %w", file, err)
		}
	}
	if err := createAll(ctx, admin, podRights); err != nil {
		return fmt.Errorf("creating the backends' rights in the Pod namespace: %w", err)
	}
	return l.applyChart(ctx, admin)
}

func createAccount(ctx context.Context, clients kubernetes.Interface, namespace, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clients.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}

func createAll(ctx context.Context, as *backend.Backend, content []byte) error {
	objects, err := backend.Decode(content)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if _, err := as.CreateObject(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
