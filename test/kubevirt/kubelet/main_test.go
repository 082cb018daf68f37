// Package kubelet tests what only a real kubelet shows: that a launcher Pod ends by itself at its machine's deadline, with
// KubeVirt's own virt-api and virt-controller.
package kubelet

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/kubevirt/worker"
	"github.com/ttlab/vmwarden/test/node"
)

var shared *stack.Stack

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if err := node.Unavailable(); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: nothing is shown about deadlines that the kubelet enforces:", err)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if shared, err = stack.Start(ctx, stack.Options{Progress: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	end := func(what string, stop func() error) {
		if err := stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the %s: %v\n", what, err)
			status = 1
		}
	}
	defer end("lab", shared.Stop)
	machine, err := worker.Add(ctx, shared, node.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end("node", machine.Stop)
	return m.Run()
}
