// measure prints how long it takes from the end of a session until its virtual machine is gone, as a distribution over many
// sessions, on KubeVirt's own virt-api and virt-controller and, where the machine can run one, a real kubelet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/kubevirt/worker"
	"github.com/ttlab/vmwarden/test/node"
)

func main() {
	sessions := flag.Int("sessions", 104, "how many sessions to let expire")
	interval := flag.Duration("interval", time.Minute, "the pause between the starts of two passes")
	flag.Parse()
	if err := run(*sessions, *interval); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(sessions int, interval time.Duration) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	unavailable := node.Unavailable()
	options := stack.Options{Progress: os.Stderr}
	if unavailable != nil {
		options.PlayedNodes = []string{"node-a"}
	}
	lab, err := stack.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		if stopError := lab.Stop(); err == nil {
			err = stopError
		}
	}()
	nodes := "Pods run on a real kubelet; what runs in them is played, and ends as soon as it is told to."
	if unavailable != nil {
		nodes = "Nodes are played, and a Pod is gone as soon as its deletion is asked: " + unavailable.Error() + "."
	} else {
		machine, err := worker.Add(ctx, lab, node.Options{Progress: os.Stderr})
		if err != nil {
			return err
		}
		defer func() {
			if stopError := machine.Stop(); err == nil {
				err = stopError
			}
		}()
	}
	m := &measurement{lab: lab, interval: interval}
	if err := m.run(ctx, sessions); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "\n%d sessions, a pass every %s (%d passes, %d of them not clean), up to %d sessions at a time\n\n", len(m.samples), interval, m.passes, m.failedPasses, atATime)
	m.print(os.Stdout)
	fmt.Fprintf(os.Stdout, `
Real: kube-apiserver, etcd, garbage collector, scheduler, virt-api, virt-controller, PostgreSQL, vmwarden's own binaries and accounts.
%s
Not real: virt-handler and guests. A guest may take its terminationGracePeriodSeconds (30) to shut down, which is not in these numbers.
Nor is the start of a CronJob's Pod: here a pass is a process.
`, nodes)
	return nil
}
