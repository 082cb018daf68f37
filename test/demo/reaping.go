package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// The ids of the backend's own rows (test/backend/manifests/sessions.sql), and one of dev's.
const (
	expiredRow  = "a0000000-0000-4000-8000-000000000001"
	liveRow     = "a1000000-0000-4000-8000-000000000002"
	ghostRow    = "a3000000-0000-4000-8000-000000000004"
	stubbornRow = "a6000000-0000-4000-8000-000000000007"
	orphanRow   = "a7000000-0000-4000-8000-000000000008"
	devOnly     = "c0000002-0000-4000-8000-000000000003"
)

// reaping shows passes over the backend's own rows.
func reaping(ctx context.Context, s *story) error {
	s.chapter("Reaping: memory must come back")
	if err := populate(ctx, s); err != nil {
		return err
	}
	machine := func(id string) string { return backend.Lesson{Session: id}.VMName() }
	if err := s.lab.RefuseDeletes(ctx, machine(stubbornRow)); err != nil {
		return err
	}

	s.tell("reapjob plan, as prod's reaper: what a pass would do. The deletion of %s is made to fail: the API server refuses it.", machine(stubbornRow))
	run, err := s.lab.Reapjob(ctx, "prod", lab.Config, "plan")
	if err != nil {
		return err
	}
	s.answer("%s", run.Stdout)
	before, err := s.statuses(ctx)
	if err != nil {
		return err
	}
	s.shown("plan says what a pass would do, and does nothing", run.Status == 0 && before[expiredRow] == "running" && s.exists(ctx, machine(expiredRow)))

	s.tell("reapjob run, as prod's reaper.")
	if run, err = s.lab.Reapjob(ctx, "prod", lab.Config, "run"); err != nil {
		return err
	}
	s.answer("%sexit status %d", run.Stdout, run.Status)
	after, err := s.statuses(ctx)
	if err != nil {
		return err
	}
	s.shown("the expired session's machine is gone and its row says so", !s.exists(ctx, machine(expiredRow)) && after[expiredRow] == "expired")
	s.shown("the row whose deletion failed is left for the next pass, and the rest went on", run.Status == 3 && s.exists(ctx, machine(stubbornRow)) && after[stubbornRow] == "running")
	s.shown("the orphan is deleted", !s.exists(ctx, machine(orphanRow)))
	s.shown("the ghost, a running session without a machine, is marked failed", after[ghostRow] == "failed")
	s.shown("the live session keeps its machine", s.exists(ctx, machine(liveRow)) && after[liveRow] == "running")
	s.shown("dev's machine, which prod's database does not know, is left alone", s.exists(ctx, machine(devOnly)))

	s.tell("What stood in the way is gone. The next pass.")
	if err := s.lab.AcceptDeletes(ctx); err != nil {
		return err
	}
	if run, err = s.lab.Reapjob(ctx, "prod", lab.Config, "run"); err != nil {
		return err
	}
	s.answer("%sexit status %d", run.Stdout, run.Status)
	if after, err = s.statuses(ctx); err != nil {
		return err
	}
	s.shown("the next pass does what failed before", run.Status == 0 && !s.exists(ctx, machine(stubbornRow)) && after[stubbornRow] == "expired")

	s.tell("As on 2026-09-12: dev's reaper, given prod's database by mistake.")
	if run, err = s.lab.ReapjobWith(ctx, "dev", s.lab.ReaperURL("prod"), lab.Config, "run"); err != nil {
		return err
	}
	s.answer("%sexit status %d", run.Stdout, run.Status)
	s.shown("a reaper with another environment's database touches nothing", run.Status == 4 && s.exists(ctx, machine(devOnly)) && s.exists(ctx, machine(liveRow)))
	return nil
}

// populate makes the backend's rows and machines, and one machine of dev's with its row.
func populate(ctx context.Context, s *story) error {
	s.tell("The backend's own rows go into prod's database, and their machines into the cluster; dev opens a session too.")
	rows := backend.Text(backend.Sessions)
	if err := s.lab.WithDatabase(ctx, "prod", func(connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, rows[strings.Index(rows, "insert into"):])
		return err
	}); err != nil {
		return fmt.Errorf("inserting the backend's rows: %w", err)
	}
	for _, id := range []string{expiredRow, liveRow, stubbornRow, orphanRow} {
		if _, err := s.lab.Backends["prod"].Open(ctx, id, backend.VMContainerDisk); err != nil {
			return fmt.Errorf("opening session %s: %w", id, err)
		}
	}
	dev, err := s.lab.Backends["dev"].Open(ctx, devOnly, backend.VMContainerDisk)
	if err != nil {
		return fmt.Errorf("opening dev's session: %w", err)
	}
	// An object counts as an orphan from an age of one second on (test/lab/config.yaml), in whole seconds.
	if err := waitUntil(ctx, dev.GetCreationTimestamp().Add(2*time.Second)); err != nil {
		return err
	}
	statuses, err := s.statuses(ctx)
	if err != nil {
		return err
	}
	s.answer("%d rows in prod's database, 5 virtual machines in %s", len(statuses), lab.VMNamespace)
	s.shown("the backend's rows and machines are there", len(statuses) == 8)
	return nil
}

func waitUntil(ctx context.Context, moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statuses are the statuses of prod's rows by id.
func (s *story) statuses(ctx context.Context) (map[string]string, error) {
	statuses := map[string]string{}
	err := s.lab.WithDatabase(ctx, "prod", func(connection *pgx.Conn) error {
		rows, err := connection.Query(ctx, `select id::text, status from sessions`)
		if err != nil {
			return err
		}
		var id, status string
		_, err = pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			statuses[id] = status
			return nil
		})
		return err
	})
	return statuses, err
}

// exists tells whether a virtual machine exists; one that cannot be looked up is none, and the step does not come out as told.
func (s *story) exists(ctx context.Context, name string) bool {
	_, err := s.lab.AdminBackend.Machines(lab.VMNamespace).Get(ctx, name, metav1.GetOptions{})
	return err == nil
}
