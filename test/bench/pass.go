package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/lab"
)

// measurePass measures passes of production's reaper, as whole processes.
func measurePass(ctx context.Context, s sizes, r *report) error {
	kubectl, err := binaries.LocateKubectl(ctx, os.Stderr)
	if err != nil {
		return err
	}
	return withStage(ctx, 1, func(st *stage) error {
		if err := st.Webhook.Unregister(ctx); err != nil {
			return err
		}
		p := &passes{stage: st, kubectl: kubectl, configuration: configuration(2*s.expired, s.concurrency)}
		for _, step := range []struct {
			name    string
			measure func(context.Context, sizes, *report) error
		}{{"with nothing due", p.nothingDue}, {"growing", p.growing}, {"the longest", p.longest}, {"listing", p.listed}} {
			fmt.Fprintf(os.Stderr, "passes: %s\n", step.name)
			if err := step.measure(ctx, s, r); err != nil {
				return err
			}
		}
		return nil
	})
}

type passes struct {
	*stage
	kubectl       string
	configuration string
	// last is the number of the session that was used last.
	last int
	// each is what a session took, in milliseconds, in a pass of a hundred.
	each float64
}

// sessions makes sessions with a virtual machine each: rows and objects. They end so long after now.
func (p *passes) sessions(ctx context.Context, count int, end time.Duration) error {
	first := p.last + 1
	p.last += count
	if err := p.populate(ctx, backend.VMGolden, "prod", first, p.last+1); err != nil {
		return err
	}
	return p.rows(ctx, first, p.last, end)
}

func (p *passes) rows(ctx context.Context, first, last int, end time.Duration) error {
	rows := make([][]any, 0, last-first+1)
	ends := time.Now().Add(end)
	for number := first; number <= last; number++ {
		id := session(number)
		rows = append(rows, []any{id, id, "systemd-1", "vm", "running", backend.Lesson{Session: id}.VMName(), ends.Add(-time.Hour), ends})
	}
	return p.WithDatabase(ctx, "prod", func(connection *pgx.Conn) error {
		batch := &pgx.Batch{}
		for _, row := range rows {
			batch.Queue(`insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)`, row...)
		}
		if err := connection.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("writing the rows of %d sessions: %w", len(rows), err)
		}
		return nil
	})
}

// processRun is a run of a program.
type processRun struct {
	took time.Duration
	// memory is the resident set at its height, in bytes, as far as somebody looked.
	memory float64
}

// reapjob runs a command of reapjob as a process.
func (p *passes) reapjob(ctx context.Context, looking bool, arguments ...string) (processRun, error) {
	command, err := p.ReapjobCommand(ctx, "prod", p.ReaperURL("prod"), p.configuration, arguments...)
	if err != nil {
		return processRun{}, err
	}
	return timed(command, looking)
}

// lookInterval is the pause between two looks at how much memory a process holds. The system tells a parent of its own memory where its
// child never held as much.
const lookInterval = 2 * time.Millisecond

// timed runs a program, and looks at its memory if that is wanted.
func timed(command *exec.Cmd, looking bool) (processRun, error) {
	output, err := os.CreateTemp("", "vmwarden-bench-")
	if err != nil {
		return processRun{}, fmt.Errorf("making a file for a program's output: %w", err)
	}
	defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }() // What it said is of no further use.
	command.Stdout, command.Stderr = output, output
	started := time.Now()
	if err := command.Start(); err != nil {
		return processRun{}, fmt.Errorf("starting %s: %w", filepath.Base(command.Path), err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	if !looking {
		looks.Stop()
	}
	var run processRun
	for {
		select {
		case err := <-ended:
			run.took = time.Since(started)
			if err != nil {
				said, _ := os.ReadFile(output.Name())
				return processRun{}, fmt.Errorf("running %s: %w\n%s", filepath.Base(command.Path), err, said[max(0, len(said)-2000):])
			}
			return run, nil
		case <-looks.C:
			// A process that has just ended has no memory any more.
			if held, err := memoryOf(command.Process.Pid); err == nil {
				run.memory = max(run.memory, held.most)
			}
		}
	}
}

// nothingDue measures the pass of every minute against kubectl, the least that looks at the cluster.
func (p *passes) nothingDue(ctx context.Context, s sizes, r *report) error {
	if err := p.sessions(ctx, places, time.Hour); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "vmwarden-bench-")
	if err != nil {
		return fmt.Errorf("making kubectl's home: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }() // Nothing but what kubectl remembers of the API server.
	account, err := p.ReaperConfig(ctx, "prod")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := p.ControlPlane.WriteKubeconfig(kubeconfig, account); err != nil {
		return err
	}
	measure := func(variant, _ int) (time.Duration, error) {
		// A pass is a minute after the one before. kube-apiserver lets a list wait that follows another of its kind within a tenth of a second.
		if err := rest(ctx, s.pause); err != nil {
			return 0, err
		}
		if variant == 0 {
			command := exec.CommandContext(ctx, p.kubectl, "get", "vm", "--namespace", lab.VMNamespace, "--kubeconfig", kubeconfig)
			command.Env = []string{"HOME=" + home}
			run, err := timed(command, false)
			return run.took, err
		}
		run, err := p.reapjob(ctx, false, "run")
		return run.took, err
	}
	// kubectl keeps what the API server serves for hours; the pass keeps nothing. Neither's first run is of the everyday.
	if _, err := inTurns(2, 2, measure); err != nil {
		return err
	}
	took, err := inTurns(s.passes, 2, measure)
	if err != nil {
		return err
	}
	run, err := p.reapjob(ctx, true, "run")
	if err != nil {
		return err
	}
	r.note(fmt.Sprintf("kubectl get vm, %d virtual machines", places), "p50 %.0f ms", milliseconds(took[0].median()))
	r.note("pass with nothing due, the same", "p50 %.0f ms", milliseconds(took[1].median()))
	r.atMost("pass with nothing due / kubectl get vm", took[1].over(took[0]), 1.5, "")
	r.atMost("pass with nothing due: memory at its height (RSS)", run.memory/mebibyte, 48, "MiB")
	return nil
}

// growing measures passes of more and more expired sessions.
func (p *passes) growing(ctx context.Context, s sizes, r *report) error {
	for size := 10; size < s.expired; size *= 10 {
		if err := p.sessions(ctx, size, -time.Minute); err != nil {
			return err
		}
		run, err := p.reapjob(ctx, true, "run")
		if err != nil {
			return err
		}
		each := milliseconds(run.took) / float64(size)
		r.note(fmt.Sprintf("pass with %d expired sessions", size), "%.2f s, %.2f ms a session", run.took.Seconds(), each)
		if size == 100 {
			p.each = each
		}
	}
	return nil
}

// longest measures a pass that ends all that there is against a loop that deletes as much, as many at a time, and does nothing else.
func (p *passes) longest(ctx context.Context, s sizes, r *report) error {
	if err := p.sessions(ctx, s.expired, time.Hour); err != nil {
		return err
	}
	first, last := p.last-s.expired+1, p.last
	bareTook, err := p.deleteLoop(ctx, first, last+1, s.concurrency)
	if err != nil {
		return err
	}
	if err := p.WithDatabase(ctx, "prod", func(connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, `delete from sessions where id between $1 and $2`, session(first), session(last))
		return err
	}); err != nil {
		return fmt.Errorf("deleting the rows of what the loop deleted: %w", err)
	}
	if err := p.sessions(ctx, s.expired, -time.Minute); err != nil {
		return err
	}
	run, err := p.reapjob(ctx, true, "run")
	if err != nil {
		return err
	}
	r.note(fmt.Sprintf("pass with %d expired sessions", s.expired), "%.2f s, %.2f ms a session, %.1f MiB", run.took.Seconds(), milliseconds(run.took)/float64(s.expired), run.memory/mebibyte)
	if p.each > 0 {
		r.note(fmt.Sprintf("a session in a pass of %d / in one of 100 (1: time grows as a line)", s.expired), "%.2f", milliseconds(run.took)/float64(s.expired)/p.each)
	}
	r.note(fmt.Sprintf("bare loop that deletes %d virtual machines, %d at once", s.expired, s.concurrency), "%.2f s, %.2f ms each", bareTook.Seconds(), milliseconds(bareTook)/float64(s.expired))
	r.atLeast("sessions a second of the pass / deletions a second of the bare loop", float64(bareTook)/float64(run.took), 0.8, "")
	return nil
}

// deleteLoop deletes the virtual machines of sessions as the reaper, so many at once.
func (p *passes) deleteLoop(ctx context.Context, from, to, atOnce int) (time.Duration, error) {
	account, err := p.ReaperConfig(ctx, "prod")
	if err != nil {
		return 0, err
	}
	client, err := metadata.NewForConfig(account)
	if err != nil {
		return 0, fmt.Errorf("making the client: %w", err)
	}
	deletes, ctx := errgroup.WithContext(ctx)
	deletes.SetLimit(atOnce)
	started := time.Now()
	for number := from; number < to; number++ {
		deletes.Go(func() error {
			return client.Resource(machines).Namespace(lab.VMNamespace).Delete(ctx, backend.Lesson{Session: session(number)}.VMName(), metav1.DeleteOptions{})
		})
	}
	if err := deletes.Wait(); err != nil {
		return 0, fmt.Errorf("deleting in a loop: %w", err)
	}
	return time.Since(started), nil
}

// listed measures what a pass holds that lists and plans a namespace of many objects: a tenth of them virtual machines, the others
// Secrets of the other environment's sessions.
func (p *passes) listed(ctx context.Context, s sizes, r *report) error {
	count := s.listed / 10
	if err := p.sessions(ctx, count, -time.Minute); err != nil {
		return err
	}
	if err := p.populate(ctx, backend.CloudInitSecret, "dev", 0, s.listed-count); err != nil {
		return err
	}
	run, err := p.reapjob(ctx, true, "plan")
	if err != nil {
		return err
	}
	r.note(fmt.Sprintf("plan over %d objects, %d sessions of them expired", s.listed, count), "%.2f s", run.took.Seconds())
	r.atMost("the same: memory at its height (RSS)", run.memory/mebibyte, 256, "MiB")
	return nil
}
