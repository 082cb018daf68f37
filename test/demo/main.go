// Command demo tells vmwarden's whole story on a real control plane and a real PostgreSQL, step by step, with what Kubernetes
// answered. It ends with a table of what was shown, and with a non-zero status if any step did not come out as told. With -stay it leaves
// all of it up until Ctrl-C, and says how to try the commands on it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/lab"
)

// replicas of the webhook stand behind one address.
const replicas = 3

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	stays := flag.Bool("stay", false, "leave everything up until Ctrl-C, to try commands on it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var kubectl string
	if *stays {
		// Before the lab is up: the first time it is built, which takes some minutes.
		if kubectl, err = binaries.LocateKubectl(ctx, os.Stdout); err != nil {
			return err
		}
	}
	began := time.Now()
	fmt.Println("Bringing up etcd, kube-apiserver, kube-controller-manager, KubeVirt's resources, PostgreSQL and three replicas of the webhook.")
	l, err := lab.Start(ctx, os.Stdout, replicas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	fmt.Printf("Ready after %s. Two backends, ttlab-prod/backend and ttlab-dev/backend, share the namespace %s.\n", time.Since(began).Round(time.Second), lab.VMNamespace)

	s := &story{lab: l, out: os.Stdout}
	rest.SetDefaultWarningHandler(s)
	for _, chapter := range []func(context.Context, *story) error{admission, places, reaping} {
		if err := chapter(ctx, s); err != nil {
			return err
		}
	}
	if err := s.end(time.Since(began)); err != nil {
		return err
	}
	if *stays {
		return stay(ctx, l, kubectl, os.Stdout)
	}
	fmt.Print(whatNext)
	return nil
}
