package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// patience bounds the wait for something that other processes do. It is generous: a loaded machine is no failure.
const patience = time.Minute

// await waits until condition holds and fails the test if it does not. An error of condition is what it still waits for.
func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, errors.Join(err, last))
	}
}

func clients(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	set, err := shared.Clients()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// sessionID makes the id of a test's nth session. The first eight characters, by which the backend names its objects, differ
// from session to session.
func sessionID(letter byte, n int) string {
	return fmt.Sprintf("%02x%06d-0000-4000-8000-%012d", letter, n, n)
}

// clean empties the lab when the test ends, and before it begins, whatever an interrupted one left.
func clean(t *testing.T) {
	t.Helper()
	empty(t)
	t.Cleanup(func() { empty(t) })
}

// contextAfter is for clean-up: a test's own context has ended by then.
func contextAfter(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	// The process outlives the clean-up; the timer ends by itself.
	context.AfterFunc(ctx, cancel)
	return ctx
}

// empty deletes all lab objects and rows and waits until they are gone. It acts as an admin, whom no rule binds in this.
func empty(t *testing.T) {
	t.Helper()
	ctx := contextAfter(t)
	core := clients(t).CoreV1()
	selector := metav1.ListOptions{LabelSelector: "ttlab.io/session"}
	var problems []error
	problems = append(problems,
		shared.AdminBackend.Machines(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		shared.AdminBackend.Instances(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		core.Secrets(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector),
		clients(t).NetworkingV1().NetworkPolicies(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector),
		core.Pods(lab.PodNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}),
	)
	// Services cannot be deleted as a collection before the API server's ServiceDeleteCollection; one by one it is.
	services, err := core.Services(lab.VMNamespace).List(ctx, selector)
	problems = append(problems, err)
	if err == nil {
		for _, service := range services.Items {
			problems = append(problems, core.Services(lab.VMNamespace).Delete(ctx, service.Name, metav1.DeleteOptions{}))
		}
	}
	for _, environment := range lab.Environments {
		problems = append(problems, shared.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
			_, err := connection.Exec(ctx, "delete from sessions")
			return err
		}))
	}
	if err := errors.Join(problems...); err != nil {
		t.Fatalf("emptying the lab: %v", err)
	}
	// Virtual machines with a finalizer of the test's own would stay: the test that made them takes it off.
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(machines.Items) == 0, err
	})
	if err != nil {
		t.Fatalf("waiting for the virtual machines to be gone: %v", err)
	}
	// What one test reserved and no replica saw come to be, since it had them stopped, is not to be missing to the next.
	err = core.ConfigMaps(lab.VMNamespace).Delete(ctx, ledger.ConfigMapName, metav1.DeleteOptions{})
	if err := ignoreNotFound(err); err != nil {
		t.Fatalf("emptying the ledger: %v", err)
	}
}

// machineNames lists the virtual machines that exist.
func machineNames(t *testing.T) []string {
	t.Helper()
	machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, machine := range machines.Items {
		names = append(names, machine.Name)
	}
	return names
}

// typed gives the typed clients of whoever signs in by this configuration.
func typed(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func machine(t *testing.T, name string) *kubevirtv1.VirtualMachine {
	t.Helper()
	found, err := shared.AdminBackend.Machines(lab.VMNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("getting virtual machine %s: %v", name, err)
	}
	return found
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := shared.AdminBackend.Machines(lab.VMNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("getting virtual machine %s: %v", name, err)
	}
	return err == nil
}

func secretExists(t *testing.T, name string) bool {
	t.Helper()
	_, err := clients(t).CoreV1().Secrets(lab.VMNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("getting Secret %s: %v", name, err)
	}
	return err == nil
}

func expectDenied(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	if got := backend.DenialCodes(err); !slices.Equal(got, want) {
		t.Errorf("%s: denied by %v, want %v (%v)", what, got, want, err)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v is not a 403", what, err)
	}
}

// object is the only object of a backend's manifest for a session, changed.
func object(t *testing.T, file string, lesson backend.Lesson, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	objects, err := backend.Objects(file, lesson)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(objects[0])
	}
	return objects[0]
}

func withLabel(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		if value == "" {
			delete(labels, key)
		} else {
			labels[key] = value
		}
		o.SetLabels(labels)
	}
}

func open(t *testing.T, environment, session string) {
	t.Helper()
	if _, err := shared.Backends[environment].Open(t.Context(), session, backend.VMContainerDisk); err != nil {
		t.Fatalf("opening session %s of %s: %v", session, environment, err)
	}
}
