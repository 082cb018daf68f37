package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// countEndings makes prod's database note every time that a session is ended, until the test ends.
func countEndings(t *testing.T) {
	t.Helper()
	execute(t, "prod", `create table endings (id uuid, by text)`)
	execute(t, "prod", `create function note_ending() returns trigger security definer language plpgsql as
		$$ begin insert into endings values (new.id, session_user); return new; end $$`)
	execute(t, "prod", `create trigger note_ending after update on sessions for each row
		when (new.status in ('expired', 'failed')) execute function note_ending()`)
	t.Cleanup(func() {
		execute(t, "prod", `drop trigger note_ending on sessions`)
		execute(t, "prod", `drop function note_ending`)
		execute(t, "prod", `drop table endings`)
	})
}

// endings gives how often each session was ended by the reaper.
func endings(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	query(t, "prod", func(ctx context.Context, connection *pgx.Conn) error {
		rows, err := connection.Query(ctx, `select id::text, count(*) from endings where by = 'reaper' group by id`)
		if err != nil {
			return err
		}
		var id string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
			found[id] = n
			return nil
		})
		return err
	})
	return found
}

// crowded makes a lab with something to do in every direction, and gives the ids of the sessions that have to end.
func crowded(t *testing.T, letter byte) (ending []string, live string) {
	t.Helper()
	for i := range 4 {
		ending = append(ending, sessionID(letter, i))
		open(t, "prod", ending[i])
		insert(t, "prod", expired(ending[i]))
	}
	ghost := sessionID(letter, 10)
	insert(t, "prod", running(ghost))
	live = sessionID(letter, 11)
	open(t, "prod", live)
	insert(t, "prod", running(live))
	open(t, "prod", sessionID(letter, 12))
	comeOfAge(t, sessionID(letter, 12))
	return append(ending, ghost), live
}

func expectEachEndedOnce(t *testing.T, ending []string) {
	t.Helper()
	times := endings(t)
	for _, id := range ending {
		if times[id] != 1 {
			t.Errorf("session %s was ended %d times", id, times[id])
		}
	}
}

func TestTwoReapjobsAtOnceEndEachSessionOnce(t *testing.T) {
	clean(t)
	countEndings(t)
	ending, live := crowded(t, 'k')
	var group sync.WaitGroup
	runs := make([]lab.Run, 3)
	errs := make([]error, len(runs))
	for i := range runs {
		group.Go(func() { runs[i], errs[i] = shared.Reapjob(t.Context(), "prod", lab.Config, "run") })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		expectExit(t, run, reap.ExitClean)
	}
	expectEachEndedOnce(t, ending)
	expectLeft(t, live)
}

// TestTwoPassesWithoutTheirLockEndEachSessionOnce applies one plan twice at the same time: what holds when the lock is lost.
func TestTwoPassesWithoutTheirLockEndEachSessionOnce(t *testing.T) {
	clean(t)
	countEndings(t)
	ending, live := crowded(t, 'l')
	first, second := pass(t, "prod"), pass(t, "prod")
	made := plan(t, first, 7)
	var group sync.WaitGroup
	reports := make([]reap.Report, 2)
	for i, p := range []*reap.Pass{first, second} {
		group.Go(func() { reports[i] = p.Apply(t.Context(), made) })
	}
	group.Wait()
	for _, report := range reports {
		for _, item := range report.Items {
			if item.Result == reap.Failed {
				t.Errorf("%s of session %s: %s", item.Direction, item.Session, item.Detail)
			}
		}
	}
	expectEachEndedOnce(t, ending)
	expectLeft(t, live)
}

// TestBesideTheBackendsOwnReaper runs a pass while the backend reaps the same sessions with none of our care: by name, without
// locks, preconditions or a second look.
func TestBesideTheBackendsOwnReaper(t *testing.T) {
	clean(t)
	ending, live := crowded(t, 'm')
	ended := ending[:4]
	p := pass(t, "prod")
	made := plan(t, p, 7)
	var group sync.WaitGroup
	var problem error
	group.Go(func() { problem = reapAsTheBackend(t.Context(), slices.Backward(ended)) })
	report := p.Apply(t.Context(), made)
	group.Wait()
	if problem != nil {
		t.Fatal(problem)
	}
	for _, item := range report.Items {
		if item.Result == reap.Failed {
			t.Errorf("%s of session %s: %s", item.Direction, item.Session, item.Detail)
		}
	}
	for _, id := range ended {
		expectStatus(t, "prod", id, "expired")
	}
	expectLeft(t, live)
}

// reapAsTheBackend ends sessions as the backend does.
func reapAsTheBackend(ctx context.Context, sessions func(func(int, string) bool)) error {
	prod := shared.Backends["prod"]
	core, err := shared.Clients()
	if err != nil {
		return err
	}
	return shared.WithDatabase(ctx, "prod", func(connection *pgx.Conn) error {
		for _, id := range sessions {
			name := backend.Lesson{Session: id}.VMName()
			if err := ignoreNotFound(prod.Machines(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
				return fmt.Errorf("deleting %s: %w", name, err)
			}
			if err := ignoreNotFound(core.CoreV1().Secrets(lab.VMNamespace).Delete(ctx, name+"-cloudinit", metav1.DeleteOptions{})); err != nil {
				return fmt.Errorf("deleting the Secret of %s: %w", name, err)
			}
			if _, err := connection.Exec(ctx, `update sessions set status = 'expired', finished_at = now() where id = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestAMachineWhoseRowIsNotYetCommittedLives has a machine before its row: younger than the minimum age it is nobody's orphan.
func TestAMachineWhoseRowIsNotYetCommittedLives(t *testing.T) {
	clean(t)
	session := sessionID('n', 1)
	open(t, "prod", session)
	p := pass(t, "prod")
	p.Settings.OrphanMinimumAge = 5 * time.Minute // the default
	report := p.Run(t.Context())
	if len(report.Items) != 0 {
		t.Errorf("items = %+v, want none", report.Items)
	}
	expectLeft(t, session)
}

// TestADatabaseThatRestartsInTheMiddleLetsTheStudentExtend restarts it after the machine was judged and marked, right before it would
// be deleted. With the database its lock on the row is gone.
func TestADatabaseThatRestartsInTheMiddleLetsTheStudentExtend(t *testing.T) {
	clean(t)
	session := sessionID('n', 2)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	p := pass(t, "prod")
	p.Settings.ItemTimeout = patience
	p.Cluster = interruptedCluster{p.Cluster, func() {
		if err := shared.Postgres.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		execute(t, "prod", `update sessions set expires_at = now() + interval '60 min' where id = '`+session+`' and status = 'running'`)
	}}
	report := p.Run(t.Context())
	if got := report.ExitStatus(); got != reap.ExitItemsFailed {
		t.Errorf("exit status = %d, want %d: %+v", got, reap.ExitItemsFailed, report.Items)
	}
	expectStatus(t, "prod", session, "running")
	expectLeft(t, session)
}

// interruptedCluster lets something happen after a machine was marked.
type interruptedCluster struct {
	reap.ClusterAccess
	interrupt func()
}

func (c interruptedCluster) Annotate(ctx context.Context, object reap.Object, key, value string) error {
	err := c.ClusterAccess.Annotate(ctx, object, key, value)
	c.interrupt()
	return err
}
