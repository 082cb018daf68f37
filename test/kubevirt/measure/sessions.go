package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/kubevirt/worker"
	vmlab "github.com/ttlab/vmwarden/test/lab"
)

const (
	environment = "prod"
	// atATime sessions go on beside each other, more than a lab has places for, so that the measurement ends in minutes. places leaves
	// some free: a machine that is going still holds its own.
	atATime = 26
	places  = 34
	// sessionLimit bounds all that happens to one session.
	sessionLimit = 10 * time.Minute
	pollInterval = 100 * time.Millisecond
)

// sample is one session's end.
type sample struct{ expired, asked, gone time.Time }

type measurement struct {
	lab      *stack.Stack
	interval time.Duration
	samples  map[string]*sample
	// passes ended, of which failedPasses not with exit status 0. They are read when no pass is under way any more.
	passes, failedPasses int

	mutex sync.Mutex
	gone  map[string]time.Time
}

// run lets sessions expire, each at a moment of its own between two passes, while passes go on.
func (m *measurement) run(ctx context.Context, sessions int) error {
	if err := m.lab.Webhook.Run(ctx, configuration(), 1); err != nil {
		return err
	}
	m.samples, m.gone = map[string]*sample{}, map[string]time.Time{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching, err := m.lab.Machines.KubevirtV1().VirtualMachines(vmlab.VMNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go m.seeDepartures(watching)
	passes := make(chan error, 1)
	go func() { passes <- m.pass(ctx) }()

	going, goingContext := errgroup.WithContext(ctx)
	going.SetLimit(atATime)
	for n := range sessions {
		lesson := backend.Lesson{Session: fmt.Sprintf("%08x-0000-4000-8000-%012d", 0xc0000000+n, n), Environment: environment}
		going.Go(func() error {
			ctx, cancel := context.WithTimeout(goingContext, sessionLimit)
			defer cancel()
			if err := m.session(ctx, lesson); err != nil {
				return fmt.Errorf("session %d: %w", n, err)
			}
			return nil
		})
	}
	if err := going.Wait(); err != nil {
		return err
	}
	cancel()
	if err := <-passes; err != nil {
		return err
	}
	return m.readAsked()
}

// configuration is the lab's with more places, and with the time that an item has by default.
func configuration() string {
	return strings.NewReplacer("caps: {", fmt.Sprintf("caps: {vms: %d, ", places), "  itemTimeout: 5s\n", "").Replace(vmlab.Config)
}

func (m *measurement) seeDepartures(watching watch.Interface) {
	for event := range watching.ResultChan() {
		machine, ok := event.Object.(*kubevirtv1.VirtualMachine)
		if !ok || event.Type != watch.Deleted {
			continue
		}
		m.mutex.Lock()
		m.gone[machine.Name] = time.Now()
		m.mutex.Unlock()
	}
}

// pass runs the reaper as its CronJob would, until the context ends.
func (m *measurement) pass(ctx context.Context) error {
	tick := time.NewTicker(m.interval)
	defer tick.Stop()
	for {
		run, err := m.lab.Reapjob(context.WithoutCancel(ctx), environment, configuration(), "run")
		if err != nil {
			return err
		}
		m.passes++
		if run.Status != 0 {
			// The next one tries again, as it would in a cluster; what that costs is in the numbers.
			m.failedPasses++
			fmt.Fprintf(os.Stderr, "a pass ended with %d:\n%s%s\n", run.Status, run.Stdout, run.Stderr)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// session opens a session as its backend does, row first, and lets it expire once its machine runs.
func (m *measurement) session(ctx context.Context, lesson backend.Lesson) error {
	if err := m.execute(ctx, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
		values ($1::uuid, $1::uuid::text, 'systemd-1', 'vm', 'running', $2, now(), now() + interval '1 hour')`, lesson.Session, lesson.VMName()); err != nil {
		return err
	}
	if err := m.open(ctx, lesson); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		instance, err := m.lab.Instance(ctx, lesson.VMName())
		return err == nil && instance.Status.Phase == kubevirtv1.Running, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for its machine to run: %w", err)
	}
	expires := time.Now().Add(time.Duration(rand.Int64N(int64(m.interval))))
	if err := m.execute(ctx, `update sessions set expires_at = $2 where id = $1`, lesson.Session, expires); err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		gone, found := m.gone[lesson.VMName()]
		if found {
			m.samples[lesson.VMName()] = &sample{expired: expires, gone: gone}
		}
		return found, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for its machine to go: %w", err)
	}
	return nil
}

func (m *measurement) open(ctx context.Context, lesson backend.Lesson) error {
	as := m.lab.Backends[environment]
	if _, err := as.Create(ctx, backend.CloudInitSecret, lesson); err != nil {
		return err
	}
	objects, err := backend.Objects(backend.VMContainerDisk, lesson)
	if err != nil {
		return err
	}
	if err := worker.Shrink(objects[0]); err != nil {
		return err
	}
	_, err = as.CreateObject(ctx, objects[0], metav1.CreateOptions{})
	return err
}

func (m *measurement) execute(ctx context.Context, statement string, arguments ...any) error {
	return m.lab.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
		tag, err := connection.Exec(ctx, statement, arguments...)
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("not one row was written")
		}
		return err
	})
}
