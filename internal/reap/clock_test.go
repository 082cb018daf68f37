package reap

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/ttlab/vmwarden/internal/lab"
)

// tellingCluster holds virtual machines. Its answers set the clock right, as the API server's do.
type tellingCluster struct {
	clock   *testingclock.FakePassiveClock
	right   time.Time
	objects []Object
	deleted []string
}

func (c *tellingCluster) List(_ context.Context, kind Kind, _ string) ([]Object, error) {
	c.clock.SetTime(c.right)
	if kind != VirtualMachine {
		return nil, nil
	}
	return c.objects, nil
}

func (c *tellingCluster) Get(_ context.Context, _ Kind, _, name string) (Object, error) {
	c.clock.SetTime(c.right)
	for _, object := range c.objects {
		if object.Name == name {
			return object, nil
		}
	}
	return Object{}, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (c *tellingCluster) Annotate(context.Context, Object, string, string) error { return nil }

func (c *tellingCluster) Delete(_ context.Context, object Object) error {
	c.deleted = append(c.deleted, object.Name)
	return nil
}

// emptyStore has no row, and its clock is right.
type emptyStore struct{ now time.Time }

func (s emptyStore) Read(context.Context) (Rows, error) { return Rows{Now: s.now, Fence: "prod"}, nil }

func (emptyStore) Expire(context.Context, string, LockedWork) (string, error) { return "", nil }

func (emptyStore) Live(context.Context, string) (bool, error) { return false, nil }

func (emptyStore) Fail(context.Context, string, string, time.Duration) (bool, error) {
	return false, nil
}

// passBy is a pass on a machine whose clock is wrong, and whose question for the time was not answered.
func passBy(wrong time.Duration, objects ...Object) (*Pass, *tellingCluster) {
	clock := testingclock.NewFakePassiveClock(noon.Add(wrong))
	cluster := &tellingCluster{clock: clock, right: noon, objects: objects}
	settings := testSettings()
	settings.ItemTimeout, settings.Concurrency = time.Minute, 1
	return &Pass{
		Cluster: cluster, Store: emptyStore{noon}, Contract: lab.Contract{VMNamespace: "lab-vms"}, Settings: settings, Clock: clock, Log: zap.NewNop(),
	}, cluster
}

func TestAMachineOfAMomentIsNoOrphanByAClockThatIsSetRightByTheList(t *testing.T) {
	pass, cluster := passBy(2*time.Minute+30*time.Second, machine("a", created(minutes(-3))))
	if report := pass.Run(t.Context()); len(cluster.deleted) > 0 {
		t.Errorf("deleted %v: %+v", cluster.deleted, report)
	}
	pass, cluster = passBy(0, machine("a", created(minutes(-6))))
	if pass.Run(t.Context()); len(cluster.deleted) != 1 {
		t.Errorf("an orphan that is old enough was kept: deleted %v", cluster.deleted)
	}
}

func TestADeadlineIsJudgedByTheTimeThatTheSecondLookTells(t *testing.T) {
	object := machine("a", deadline("2026-11-29T12:30:00Z"))
	pass, cluster := passBy(time.Hour, object)
	kept, err := pass.deletePastDeadline(t.Context(), Action{Direction: Deadline, Objects: []Object{object}})
	if err != nil || kept == "" || len(cluster.deleted) > 0 {
		t.Errorf("kept %q, error %v, deleted %v", kept, err, cluster.deleted)
	}
}
