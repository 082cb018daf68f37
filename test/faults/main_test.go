// Package faults breaks one thing at a time around a school at work: backends open, extend and end sessions, passes run, and the
// API server, etcd, PostgreSQL, the replicas, their certificate, clock, network or disk fail. Afterwards the invariants are judged by
// what the API server's audit log and the databases recorded, and cluster and tables have to agree again. docs/reliability.md says what
// was seen.
package faults

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/ttlab/vmwarden/test/lab"
)

const replicas = 3

// configuration is the lab's, with passes that give up soon, and without brakes: after a fault there may be more orphans than a brake lets
// pass, and who releases it is an admin, who is not here.
var configuration = strings.Replace(lab.Config, "  itemTimeout: 5s\n", `  itemTimeout: 2s
  passTimeout: 10s
brakes:
  orphans: {maxCount: 1000, maxSharePercent: 100}
  ghosts: {maxCount: 1000, maxSharePercent: 100}
`, 1)

var shared *lab.Lab

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if shared, err = lab.Start(ctx, os.Stderr, replicas); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the lab:", err)
			status = 1
		}
	}()
	supervised, unsupervise := context.WithCancel(ctx)
	defer unsupervise()
	go shared.Webhook.Supervise(supervised)
	return m.Run()
}
