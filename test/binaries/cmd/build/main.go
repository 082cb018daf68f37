// build gets everything that the tests' control plane needs, so that the tests need not wait for it, and prints where it is.
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
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := binaries.Locate(ctx, os.Stderr)
	if err != nil {
		return err
	}
	for _, path := range []string{set.Etcd, set.APIServer, set.ControllerManager, set.CustomResourceDefinitions} {
		fmt.Println(path)
	}
	return nil
}
