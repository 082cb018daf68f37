// Package e2e tests vmwarden's own binaries on a real control plane with KubeVirt's real resources and a real PostgreSQL, as
// the real accounts.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/ttlab/vmwarden/test/chart"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/lab"
)

// replicas of the webhook stand behind one address in all tests.
const replicas = 3

// shared is the lab that all tests share: each cleans up what it made.
var shared *lab.Lab

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if os.Getenv(doomedVariable) != "" {
		if err := runDoomed(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the lab:", err)
			status = 1
		}
	}()
	return m.Run()
}

// start starts a lab that knows the kinds of all that the chart can render.
func start(ctx context.Context) error {
	helm, err := chart.NewHelm(ctx)
	if err != nil {
		return err
	}
	definitions, err := helm.Definitions(ctx)
	if err != nil {
		return err
	}
	shared, err = lab.StartWith(ctx, lab.Options{
		Progress: os.Stderr, Replicas: replicas, ControlPlane: controlplane.Options{Definitions: definitions},
	})
	return err
}
