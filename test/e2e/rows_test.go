package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/test/backend"
)

// session is a row of the sessions table, its times told from now.
type session struct {
	id      string
	status  string
	runtime string
	vmName  string
	started time.Duration
	ends    time.Duration
}

// running is a running session of half an hour, with half an hour to go.
func running(id string) session {
	return session{id: id, status: "running", runtime: "vm", vmName: backend.Lesson{Session: id}.VMName(), started: -30 * time.Minute, ends: 30 * time.Minute}
}

// expired is a running session whose end passed a minute ago.
func expired(id string) session {
	s := running(id)
	s.started, s.ends = -61*time.Minute, -time.Minute
	return s
}

func query(t *testing.T, environment string, work func(ctx context.Context, connection *pgx.Conn) error) {
	t.Helper()
	ctx := contextAfter(t)
	if err := shared.WithDatabase(ctx, environment, func(connection *pgx.Conn) error { return work(ctx, connection) }); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, environment, statement string, arguments ...any) {
	t.Helper()
	query(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, statement, arguments...)
		return err
	})
}

// insert writes rows, each of a user of its own: there is one live session for each.
func insert(t *testing.T, environment string, sessions ...session) {
	t.Helper()
	for _, s := range sessions {
		var vmName *string
		if s.vmName != "" {
			vmName = &s.vmName
		}
		execute(t, environment, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
			values ($1::uuid, $1::uuid::text, 'systemd-1', $2, $3, $4, now() + $5::interval, now() + $6::interval)`,
			s.id, s.runtime, s.status, vmName, s.started.String(), s.ends.String())
	}
}

// statusOf gives a row's status, and whether finished_at is set.
func statusOf(t *testing.T, environment, id string) (status string, finished bool) {
	t.Helper()
	query(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, `select status, finished_at is not null from sessions where id = $1`, id).Scan(&status, &finished)
	})
	return status, finished
}

func expectStatus(t *testing.T, environment, id, want string) {
	t.Helper()
	got, finished := statusOf(t, environment, id)
	if got != want {
		t.Errorf("session %s is %q, want %q", id, got, want)
	}
	if live := want == "running" || want == "starting"; live && finished {
		t.Errorf("session %s is %q and has a finished_at", id, got)
	}
	if written := want == "expired" || want == "failed"; written && !finished {
		t.Errorf("session %s is %q and has no finished_at", id, got)
	}
}
