package stack

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/kubevirt"
	"github.com/ttlab/vmwarden/test/lab"
)

// Clean empties the lab when the test ends, and before it begins, whatever an interrupted one left.
func (s *Stack) Clean(t testing.TB) {
	t.Helper()
	s.empty(t)
	t.Cleanup(func() { s.empty(t) })
}

// After is a context for clean-up: a test's own has ended by then.
func After(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	// The process outlives the clean-up; the timer ends by itself.
	context.AfterFunc(ctx, cancel)
	return ctx
}

// made are the resources of which tests make objects in the VM namespace, in the order in which they go.
var made = []schema.GroupVersionResource{
	{Group: "pool.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinepools"},
	{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancereplicasets"},
	{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"},
	{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinerestores"},
	{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"},
	{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
	{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
	kubevirt.DataVolumes,
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "secrets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// empty acts as an admin, whom no rule binds in this.
func (s *Stack) empty(t testing.TB) {
	t.Helper()
	ctx := After(t)
	for _, resource := range made {
		err := wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (bool, error) {
			return s.deleteAll(ctx, resource)
		})
		if err != nil {
			t.Fatalf("emptying the lab of %s: %v", resource.Resource, err)
		}
	}
	for _, environment := range lab.Environments {
		err := s.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
			_, err := connection.Exec(ctx, "delete from sessions")
			return err
		})
		if err != nil {
			t.Fatalf("emptying the database %s: %v", environment, err)
		}
	}
	// What a replica that is gone has not seen come to be is not to be missing to the next test.
	err := s.Clients.CoreV1().ConfigMaps(lab.VMNamespace).Delete(ctx, ledger.ConfigMapName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("emptying the ledger: %v", err)
	}
}

// deleteAll asks for the deletion of all objects of a resource, and reports true when there is none.
func (s *Stack) deleteAll(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	namespaced := s.Objects.Resource(resource).Namespace(lab.VMNamespace)
	objects, err := namespaced.List(ctx, metav1.ListOptions{})
	if err != nil || len(objects.Items) == 0 {
		return err == nil, err
	}
	var problems []error
	for _, object := range objects.Items {
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := namespaced.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("deleting %s: %w", object.GetName(), err))
		}
	}
	return false, errors.Join(problems...)
}
