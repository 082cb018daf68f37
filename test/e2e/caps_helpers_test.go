package e2e

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// forgetReservations deletes the ledger.
func forgetReservations(t *testing.T) {
	t.Helper()
	err := clients(t).CoreV1().ConfigMaps(lab.VMNamespace).Delete(contextAfter(t), ledger.ConfigMapName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func (w *warnings) contain(part string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return strings.Contains(strings.Join(w.texts, "\n"), part)
}

// warned is an environment's backend whose warnings are collected.
func warned(ctx context.Context, t *testing.T, environment string) (*backend.Backend, *warnings) {
	t.Helper()
	config, err := shared.ControlPlane.ServiceAccountConfig(ctx, "ttlab-"+environment, "backend")
	if err != nil {
		t.Fatal(err)
	}
	w := &warnings{}
	config.WarningHandler = w
	return backendOf(t, environment, config), w
}

func backendOf(t *testing.T, environment string, config *rest.Config) *backend.Backend {
	t.Helper()
	b, err := backend.New(environment, config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// createAs creates the virtual machine of a session as an environment's backend.
func createAs(t *testing.T, environment, session string, changes ...func(*unstructured.Unstructured)) error {
	t.Helper()
	o := object(t, backend.VMContainerDisk, backend.Lesson{Session: session, Environment: environment}, changes...)
	_, err := shared.Backends[environment].CreateObject(t.Context(), o, metav1.CreateOptions{})
	return err
}

func withName(name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetName(name) }
}

// withSpec sets a field below the template's spec.
func withSpec(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, append([]string{"spec", "template", "spec"}, path...)...); err != nil {
			panic(err)
		}
	}
}

func quantity(value string) *resource.Quantity {
	q := resource.MustParse(value)
	return &q
}
