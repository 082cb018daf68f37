package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// capacity is the cap of the lab's configuration.
const capacity = 8

// burst creates n virtual machines at the same time, half of them by each environment's backend, and gives every answer.
func burst(t *testing.T, n int, object func(i int, environment string) *unstructured.Unstructured) []error {
	t.Helper()
	answers := make([]error, n)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range n {
		environment := lab.Environments[i%len(lab.Environments)]
		asked := object(i, environment)
		wait.Go(func() {
			<-start
			_, answers[i] = shared.Backends[environment].CreateObject(t.Context(), asked, metav1.CreateOptions{})
		})
	}
	close(start)
	wait.Wait()
	return answers
}

// tally counts the admitted answers and fails the test for one that is neither admitted nor denied by the cap.
func tally(t *testing.T, answers []error) (admitted int) {
	t.Helper()
	for _, err := range answers {
		if err == nil {
			admitted++
			continue
		}
		if got := backend.DenialCodes(err); !slices.Equal(got, []string{"CapVMs"}) && !slices.Equal(got, []string{"CapReserved"}) {
			t.Errorf("neither admitted nor denied by the cap: %v", err)
		}
	}
	return admitted
}

// burstsVariable is the environment variable that makes a soak of the burst: how often it is repeated.
const burstsVariable = "VMWARDEN_BURSTS"

func bursts(t *testing.T) int {
	t.Helper()
	value := os.Getenv(burstsVariable)
	if value == "" {
		return 50
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number of bursts", burstsVariable, value)
	}
	return n
}

func TestOfFortyConcurrentCreatesExactlyEightAreAdmitted(t *testing.T) {
	for round := range bursts(t) {
		t.Run(fmt.Sprintf("round %d", round+1), func(t *testing.T) {
			clean(t)
			answers := burst(t, 40, func(i int, environment string) *unstructured.Unstructured {
				return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('h', round*100+i), Environment: environment})
			})
			if admitted := tally(t, answers); admitted != capacity {
				t.Errorf("%d of 40 were admitted, want %d", admitted, capacity)
			}
			if got := len(machineNames(t)); got != capacity {
				t.Errorf("%d virtual machines exist, want %d", got, capacity)
			}
		})
	}
}

func TestCreatesWithAGeneratedNameCountEachForItself(t *testing.T) {
	clean(t)
	answers := burst(t, 20, func(i int, environment string) *unstructured.Unstructured {
		o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('i', i), Environment: environment})
		o.SetName("")
		o.SetGenerateName("lab-generated-")
		return o
	})
	if admitted := tally(t, answers); admitted != capacity {
		t.Errorf("%d of 20 were admitted, want %d", admitted, capacity)
	}
}

// fill opens n sessions of prod.
func fill(t *testing.T, letter byte, n int) {
	t.Helper()
	for i := range n {
		open(t, "prod", sessionID(letter, i))
	}
}

func TestADryRunTakesNoPlace(t *testing.T) {
	clean(t)
	fill(t, 'j', capacity-1)
	last := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('j', 100), Environment: "prod"})
	for range 5 {
		if _, err := shared.Backends["prod"].CreateObject(t.Context(), last.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatalf("a dry run with a place free: %v", err)
		}
	}
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), last, metav1.CreateOptions{}); err != nil {
		t.Errorf("the create after the dry runs: %v", err)
	}
	full := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('j', 101), Environment: "prod"})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), full, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	expectDenied(t, "a dry run of the ninth", err, "CapVMs")
}

func TestAPlaceIsFreeAtOnceWhenItsMachineIsGone(t *testing.T) {
	clean(t)
	fill(t, 'k', capacity)
	next := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('k', 100), Environment: "prod"})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), next.DeepCopy(), metav1.CreateOptions{})
	expectDenied(t, "the ninth", err, "CapVMs")
	// The one that was created last: its reservation is the youngest.
	gone := backend.Lesson{Session: sessionID('k', capacity-1)}.VMName()
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), next, metav1.CreateOptions{}); err != nil {
		t.Errorf("the create after one is gone: %v", err)
	}
}

func TestATerminatingMachineHoldsItsPlace(t *testing.T) {
	clean(t)
	fill(t, 'l', capacity)
	name := backend.Lesson{Session: sessionID('l', 0)}.VMName()
	setFinalizers(t, name, "lab.test/held")
	t.Cleanup(func() { setFinalizers(t, name) })
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('l', 100), Environment: "prod"})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), next, metav1.CreateOptions{})
	expectDenied(t, "a create while one is terminating", err, "CapVMs")
}

// setFinalizers keeps a virtual machine from going, or, with none, lets it go.
func setFinalizers(t *testing.T, name string, finalizers ...string) {
	t.Helper()
	ctx := contextAfter(t)
	machines := shared.AdminBackend.Machines(lab.VMNamespace)
	machine, err := machines.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && len(finalizers) == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	machine.Finalizers = finalizers
	if _, err := machines.Update(ctx, machine, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestCreatesOfANameThatExistsAre409AndTakeNoPlace(t *testing.T) {
	clean(t)
	fill(t, 'm', capacity-1)
	taken := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('m', 0), Environment: "prod"})
	for i := range 10 {
		_, err := shared.Backends["prod"].CreateObject(t.Context(), taken.DeepCopy(), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %d of a name that exists: %v, want 409 AlreadyExists", i, err)
		}
	}
	open(t, "prod", sessionID('m', 100))
}

func TestAPlaceWhoseCreateFailedIsFreeAfterTheReservationTime(t *testing.T) {
	clean(t)
	// A short reservation, so that the test need not wait for the default's 75 seconds.
	reconfigure(t, withCaps(t, "vms: 1, reservation: 3s"))
	// The API server's own quota refuses after the webhook has granted.
	limitMachines(t, 0)
	refused := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('n', 0), Environment: "prod"})
	await(t, "the quota refuses", func(ctx context.Context) error {
		_, err := shared.Backends["prod"].CreateObject(ctx, refused.DeepCopy(), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("not the quota's refusal: %w", err)
		}
		return nil
	})
	unlimitMachines(t)
	next := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('n', 1), Environment: "prod"})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), next.DeepCopy(), metav1.CreateOptions{})
	expectDenied(t, "a create while the failed one holds its place", err, "CapReserved")
	await(t, "the place is free again", func(ctx context.Context) error {
		_, err := shared.Backends["prod"].CreateObject(ctx, next.DeepCopy(), metav1.CreateOptions{})
		return err
	})
}
