package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/lab"
)

// A test program with doomedVariable set is no test: it runs one pass of prod and kills itself right before the step of that
// number, as `kill -9` would.
const (
	doomedVariable           = "VMWARDEN_TEST_DOOMED_AT"
	doomedKubeconfigVariable = "VMWARDEN_TEST_DOOMED_KUBECONFIG"
	doomedDatabaseVariable   = "VMWARDEN_TEST_DOOMED_DATABASE"
)

// doom counts the steps of a pass, which are its calls to the outside, and ends the process at one of them.
type doom struct {
	at    int64
	steps atomic.Int64
}

func (d *doom) step() {
	if d.steps.Add(1) == d.at {
		// Nothing of this process runs on; its connections end as they are.
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

type doomedCluster struct {
	reap.ClusterAccess
	*doom
}

func (c doomedCluster) Get(ctx context.Context, kind reap.Kind, namespace, name string) (reap.Object, error) {
	c.step()
	return c.ClusterAccess.Get(ctx, kind, namespace, name)
}

func (c doomedCluster) Annotate(ctx context.Context, object reap.Object, key, value string) error {
	c.step()
	return c.ClusterAccess.Annotate(ctx, object, key, value)
}

func (c doomedCluster) Delete(ctx context.Context, object reap.Object) error {
	c.step()
	return c.ClusterAccess.Delete(ctx, object)
}

type doomedStore struct {
	reap.SessionStore
	*doom
}

func (s doomedStore) Read(ctx context.Context) (reap.Rows, error) {
	s.step()
	return s.SessionStore.Read(ctx)
}

func (s doomedStore) Expire(ctx context.Context, id string, work reap.LockedWork) (string, error) {
	s.step()
	return s.SessionStore.Expire(ctx, id, func(ctx context.Context, stillLocked func(context.Context) error) (string, error) {
		left, err := work(ctx, stillLocked)
		// The objects are gone, and the row is not yet written.
		s.step()
		return left, err
	})
}

func (s doomedStore) Live(ctx context.Context, id string) (bool, error) {
	s.step()
	return s.SessionStore.Live(ctx, id)
}

func (s doomedStore) Fail(ctx context.Context, id, vmName string, grace time.Duration) (bool, error) {
	s.step()
	return s.SessionStore.Fail(ctx, id, vmName, grace)
}

// runDoomed is the doomed process. It prints the number of steps if it comes to its end.
func runDoomed() error {
	at, err := strconv.ParseInt(os.Getenv(doomedVariable), 10, 64)
	if err != nil {
		return err
	}
	account, err := clientcmd.BuildConfigFromFlags("", os.Getenv(doomedKubeconfigVariable))
	if err != nil {
		return err
	}
	client, err := metadata.NewForConfig(account)
	if err != nil {
		return err
	}
	parsed, err := config.Parse([]byte(lab.Config))
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := reap.OpenStore(ctx, os.Getenv(doomedDatabaseVariable), parsed.Database, "prod", 1)
	if err != nil {
		return err
	}
	d := &doom{at: at}
	pass := &reap.Pass{
		Cluster:  doomedCluster{ClusterAccess: &reap.Cluster{Client: client, Contract: parsed.Contract()}, doom: d},
		Store:    doomedStore{SessionStore: store, doom: d},
		Contract: parsed.Contract(),
		Settings: killSettings(reap.NewSettings(parsed, "prod", nil)),
		Clock:    clock.RealClock{},
		Log:      zap.NewNop(),
	}
	var report reap.Report
	alone, err := store.Alone(ctx, pass.Settings.ItemTimeout, func() { report = pass.Run(ctx) })
	if err != nil || !alone {
		return errors.Join(fmt.Errorf("alone = %t", alone), err)
	}
	if status := report.ExitStatus(); status != reap.ExitClean {
		return fmt.Errorf("the pass ended with status %d: %+v", status, report)
	}
	fmt.Println(d.steps.Load())
	return nil
}

// killSettings make a pass's steps come in one order, and an orphan of what was made a moment ago.
func killSettings(s reap.Settings) reap.Settings {
	s.Concurrency, s.OrphanMinimumAge, s.Released = 1, 0, reap.BrakeNames()
	return s
}
