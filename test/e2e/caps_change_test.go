package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func TestALoweredCapTouchesNothingAndARaisedOneAdmitsAtOnce(t *testing.T) {
	clean(t)
	forgetReservations(t)
	fill(t, 'M', 4)
	reconfigure(t, withCaps(t, "vms: 2, cpu: 40"))
	before := machineNames(t)
	expectDenied(t, "a create under the lowered cap", createAs(t, "prod", sessionID('M', 4)), "CapVMs")
	taken := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('M', 0), Environment: "prod"})
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), taken, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a create of a name that exists: %v, want 409", err)
	}
	name := before[0]
	if _, err := shared.AdminBackend.Machines(lab.VMNamespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("an update under the lowered cap: %v", err)
	}
	if after := machineNames(t); !slices.Equal(before, after) {
		t.Errorf("virtual machines were %v and are %v", before, after)
	}
	if err := shared.Webhook.Run(t.Context(), withCaps(t, "vms: 5, cpu: 40"), replicas); err != nil {
		t.Fatal(err)
	}
	if err := createAs(t, "prod", sessionID('M', 5)); err != nil {
		t.Errorf("a create under the raised cap: %v", err)
	}
}

// In the middle of a rollout replicas differ: what exists stays within the greatest of their caps.
func TestReplicasThatDifferNeverAdmitMoreThanTheGreatestCap(t *testing.T) {
	clean(t)
	reconfigure(t, lab.Config)
	if err := shared.Webhook.RunMixed(t.Context(), withCaps(t, "vms: 3, cpu: 40"), withCaps(t, "vms: 5, cpu: 40"), withCaps(t, "vms: 4, cpu: 40")); err != nil {
		t.Fatal(err)
	}
	tally(t, burst(t, 40, func(i int, environment string) *unstructured.Unstructured {
		return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('N', i), Environment: environment})
	}))
	if got := len(machineNames(t)); got < 3 || got > 5 {
		t.Errorf("%d virtual machines exist, want from 3 to 5", got)
	}
}

// meanwhile repeats a disturbance until the work is done.
func meanwhile(t *testing.T, disturb func(ctx context.Context) error, work func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var disturbing sync.WaitGroup
	disturbing.Go(func() {
		for ctx.Err() == nil {
			if err := disturb(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("disturbing: %v", err)
				return
			}
		}
	})
	work()
	cancel()
	disturbing.Wait()
}

func TestReplicasKilledAtRandomAdmitNoNinth(t *testing.T) {
	clean(t)
	// Grants whose answer died with a replica come back soon.
	reconfigure(t, withCaps(t, "cpu: 40, reservation: 20s"))
	for round := range 5 {
		meanwhile(t, func(context.Context) error {
			return shared.Webhook.Kill(contextAfter(t), rand.IntN(replicas))
		}, func() {
			answers := burst(t, 40, func(i int, environment string) *unstructured.Unstructured {
				return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('O', round*100+i), Environment: environment})
			})
			for _, err := range answers {
				// A replica that dies answers nothing, and under failurePolicy Fail that is a 500.
				if got := backend.DenialCodes(err); err != nil && !apierrors.IsInternalError(err) && (len(got) == 0 || !strings.HasPrefix(got[0], "Cap")) {
					t.Errorf("neither admitted, nor denied by the cap, nor unanswered: %v", err)
				}
			}
		})
		if got := len(machineNames(t)); got > capacity {
			t.Fatalf("round %d: %d virtual machines exist, want at most %d", round, got, capacity)
		}
		empty(t)
	}
	next := 0
	await(t, "all places are free again", func(context.Context) error {
		for len(machineNames(t)) < capacity {
			next++
			if err := createAs(t, "prod", sessionID('P', next)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestALedgerThatIsDeletedOrCorruptedInABurstLeavesTheQuotaAndHeals(t *testing.T) {
	for name, spoil := range map[string]func(context.Context) error{
		"deleted": func(ctx context.Context) error {
			err := clients(t).CoreV1().ConfigMaps(lab.VMNamespace).Delete(ctx, ledger.ConfigMapName, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		},
		"unreadable": func(ctx context.Context) error {
			_, err := clients(t).CoreV1().ConfigMaps(lab.VMNamespace).Patch(ctx, ledger.ConfigMapName, types.MergePatchType,
				[]byte(fmt.Sprintf(`{"data":{"reservations":"%d is no list"}}`, rand.Int())), metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			reconfigure(t, lab.Config)
			open(t, "prod", sessionID('Q', 0))
			limitMachines(t, capacity)
			awaitQuota(t)
			meanwhile(t, spoil, func() {
				for _, err := range burst(t, 40, func(i int, environment string) *unstructured.Unstructured {
					return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('Q', 1+i), Environment: environment})
				}) {
					if got := backend.DenialCodes(err); err != nil && len(got) == 0 && !strings.Contains(err.Error(), "exceeded quota") {
						t.Errorf("neither admitted, nor denied by the cap or the quota: %v", err)
					}
				}
			})
			unlimitMachines(t)
			if got := len(machineNames(t)); got > capacity {
				t.Errorf("%d virtual machines exist, the quota allows %d", got, capacity)
			}
			told := false
			for _, replica := range shared.Webhook.Replicas() {
				told = told || strings.Contains(replica.Logs(2000), "the ledger of reservations")
			}
			if !told {
				t.Error("no replica's log tells that the ledger was " + name)
			}
			empty(t)
			forgetReservations(t)
			if admitted := tally(t, burst(t, 20, func(i int, environment string) *unstructured.Unstructured {
				return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('R', i), Environment: environment})
			})); admitted != capacity {
				t.Errorf("afterwards %d were admitted, want %d", admitted, capacity)
			}
		})
	}
}

// awaitQuota waits until the quota has counted what exists: until then it admits nothing, or does not bind.
func awaitQuota(t *testing.T) {
	t.Helper()
	await(t, "the quota has counted", func(ctx context.Context) error {
		quota, err := clients(t).CoreV1().ResourceQuotas(lab.VMNamespace).Get(ctx, quotaName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if used := quota.Status.Used["count/virtualmachines.kubevirt.io"]; used.Value() != 1 {
			return fmt.Errorf("the quota counts %s", used.String())
		}
		return nil
	})
}
