package node_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/node"
)

const boxImage = "registry.lab.internal/test/box:1"

var (
	plane  *controlplane.ControlPlane
	worker *node.Node
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if err := node.Unavailable(); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: nothing is shown about a real kubelet:", err)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	} else {
		status = m.Run()
	}
	if worker != nil {
		if err := worker.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the node:", err)
			status = 1
		}
	}
	if plane != nil {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			status = 1
		}
	}
	return status
}

func start(ctx context.Context) error {
	var err error
	if plane, err = controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr, Scheduler: true}); err != nil {
		return err
	}
	if worker, err = node.Start(ctx, plane, node.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	return worker.Import(ctx, node.Image{Name: boxImage, Binary: worker.Box(), Paths: []string{"/usr/bin/wait"}})
}
