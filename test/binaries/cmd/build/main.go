// build gets everything that the tests' control plane needs, so that the tests need not wait for it, and prints where it is. Named
// as arguments, it gets KubeVirt's servers (kubevirt), the scheduler (scheduler), kubectl (kubectl) and the programs of a node (node) besides.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ttlab/vmwarden/test/binaries"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(besides []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := binaries.Locate(ctx, os.Stderr)
	if err != nil {
		return err
	}
	paths := []string{set.Etcd, set.APIServer, set.ControllerManager, set.CustomResourceDefinitions}
	for _, name := range besides {
		more, err := locate(ctx, name)
		if err != nil {
			return err
		}
		paths = append(paths, more...)
	}
	for _, path := range paths {
		fmt.Println(path)
	}
	return nil
}

func locate(ctx context.Context, name string) ([]string, error) {
	switch name {
	case "kubevirt":
		set, err := binaries.LocateKubeVirt(ctx, os.Stderr)
		if err != nil {
			return nil, err
		}
		return []string{set.Install, set.API, set.Controller}, nil
	case "scheduler":
		path, err := binaries.LocateScheduler(ctx, os.Stderr)
		return []string{path}, err
	case "kubectl":
		path, err := binaries.LocateKubectl(ctx, os.Stderr)
		return []string{path}, err
	case "node":
		set, err := binaries.LocateNode(ctx, os.Stderr)
		if err != nil {
			return nil, err
		}
		return []string{set.Scheduler, set.Kubelet}, nil
	}
	return nil, fmt.Errorf("%q: it is one of kubectl, kubevirt, node and scheduler", name)
}
