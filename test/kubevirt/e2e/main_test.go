// Package e2e tests vmwarden beside KubeVirt's own virt-api and virt-controller. Nodes and guests are played, CDI too: see package
// kubevirt for what that leaves out.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/ttlab/vmwarden/test/kubevirt/stack"
)

// shared is the lab that all tests share: each cleans up what it made.
var shared *stack.Stack

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	shared, err = stack.Start(ctx, stack.Options{
		Progress:     os.Stderr,
		PlayedNodes:  []string{"node-a", "node-b"}, // a migration needs two
		FeatureGates: []string{"Snapshot"},
	})
	if err != nil {
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
