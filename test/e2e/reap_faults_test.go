package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func TestOneRowWhoseMachineCannotBeDeletedStopsNoOther(t *testing.T) {
	for name, obstacle := range map[string]struct {
		set, unset func(t *testing.T, name string)
		mention    string
	}{
		"403":        {refuseDeletes, func(t *testing.T, _ string) { acceptDeletes(t) }, lab.RefusalMessage},
		"500":        {func(t *testing.T, name string) { obstruct(t, name, false) }, func(t *testing.T, _ string) { unobstruct(t) }, "obstacle.lab.test"},
		"a time-out": {func(t *testing.T, name string) { obstruct(t, name, true) }, func(t *testing.T, _ string) { unobstruct(t) }, "not done within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			var sessions []string
			for i := range 5 {
				sessions = append(sessions, sessionID('u', i))
				open(t, "prod", sessions[i])
				insert(t, "prod", expired(sessions[i]))
			}
			stubborn := backend.Lesson{Session: sessions[0]}.VMName()
			obstacle.set(t, stubborn)

			document, run := reapjob(t, "prod", "run")
			expectExit(t, run, reap.ExitItemsFailed)
			expectStatus(t, "prod", sessions[0], "running")
			for _, session := range sessions[1:] {
				expectStatus(t, "prod", session, "expired")
			}
			expectLeft(t, sessions[0])
			for _, item := range document.Items {
				if item.Session == sessions[0] && !strings.Contains(item.Detail, obstacle.mention) {
					t.Errorf("the report does not say what failed: %q, want %q in it", item.Detail, obstacle.mention)
				}
			}

			obstacle.unset(t, stubborn)
			_, run = reapjob(t, "prod", "run")
			expectExit(t, run, reap.ExitClean)
			expectStatus(t, "prod", sessions[0], "expired")
			expectLeft(t)
		})
	}
}

func TestOneOrphanThatCannotBeDeletedStopsNoOther(t *testing.T) {
	clean(t)
	sessions := []string{sessionID('v', 0), sessionID('v', 1), sessionID('v', 2)}
	for _, session := range sessions {
		open(t, "prod", session)
	}
	for i := 3; i < 8; i++ {
		// Enough that live on, so that no brake is pulled.
		open(t, "prod", sessionID('v', i))
		insert(t, "prod", running(sessionID('v', i)))
	}
	comeOfAge(t, sessionID('v', 7))
	refuseDeletes(t, backend.Lesson{Session: sessions[0]}.VMName())
	document, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitItemsFailed)
	if got := document.Summary[reap.Orphan]; got != (reap.DocumentCount{Done: 5, Failed: 1}) {
		t.Errorf("orphans = %+v, want 5 done (2 machines, 3 Secrets) and 1 failed", got)
	}
}

func TestWhenTheLiveSessionsCannotBeReadNothingIsDeleted(t *testing.T) {
	for name, breakReading := range map[string]func(t *testing.T) (configuration string, repair func()){
		"the query fails": func(t *testing.T) (string, func()) {
			execute(t, "prod", `revoke select on sessions from reaper`)
			return lab.Config, func() { execute(t, "prod", `grant select on sessions to reaper`) }
		},
		"the query times out": func(t *testing.T) (string, func()) {
			return lab.Config, lockTable(t)
		},
		// The server sends some rows and then fails at one: a real error in the middle of a real answer.
		"the answer stops half way": func(t *testing.T) (string, func()) {
			execute(t, "prod", `create view half as select id, runtime, status, vm_name, started_at, expires_at, finished_at
				from sessions where 1 / (case when user_id = 'last' then 0 else 1 end) = 1`)
			execute(t, "prod", `grant select, update (status, finished_at) on half to reaper`)
			execute(t, "prod", `insert into sessions (id, user_id, lesson_id, runtime, status) values ($1, 'last', 'x', 'vm', 'running')`, sessionID('w', 99))
			return lab.Config + "database: {table: half}\n", func() { execute(t, "prod", `drop view half`) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			sessions := []string{sessionID('w', 1), sessionID('w', 2), sessionID('w', 3)}
			for _, session := range sessions {
				open(t, "prod", session)
			}
			insert(t, "prod", expired(sessions[0]), running(sessions[1]), running(sessionID('w', 4)))
			comeOfAge(t, sessions[2])

			configuration, repair := breakReading(t)
			func() {
				defer repair()
				document, run := reapjobWith(t, "prod", shared.ReaperURL("prod"), configuration, "run")
				expectExit(t, run, reap.ExitCouldNotRun)
				if got, want := holds(document), "expired Aborted, orphan Aborted, ghost Aborted"; got != want {
					t.Errorf("holds = %s, want %s", got, want)
				}
			}()
			expectLeft(t, sessions...)
			for _, session := range []string{sessions[0], sessions[1], sessionID('w', 4)} {
				expectStatus(t, "prod", session, "running")
			}
		})
	}
}

// lockTable keeps everybody from the sessions table, as a migration would, until unlock is called.
func lockTable(t *testing.T) (unlock func()) {
	t.Helper()
	ctx := contextAfter(t)
	connection, err := pgx.Connect(ctx, shared.Postgres.URL("prod"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Exec(ctx, `begin; lock table sessions in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := connection.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

func TestASessionExtendedBeforeItsTurnKeepsItsMachine(t *testing.T) {
	clean(t)
	session := sessionID('x', 1)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	p := pass(t, "prod")
	made := plan(t, p, 1)
	execute(t, "prod", `update sessions set expires_at = now() + interval '60 min' where id = $1`, session)
	if item := result(t, p.Apply(t.Context(), made)); item.Result != reap.Kept {
		t.Errorf("item = %s (%s), want Kept", item.Result, item.Detail)
	}
	expectStatus(t, "prod", session, "running")
	expectLeft(t, session)
}

func TestARowThatTheBackendHoldsIsLeftForTheNextPassWithoutWaiting(t *testing.T) {
	clean(t)
	held, free := sessionID('y', 1), sessionID('y', 2)
	for _, session := range []string{held, free} {
		open(t, "prod", session)
		insert(t, "prod", expired(session))
	}
	query(t, "prod", func(ctx context.Context, connection *pgx.Conn) error {
		return pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select from sessions where id = $1 for update`, held); err != nil {
				return err
			}
			document, run := reapjob(t, "prod", "run")
			expectExit(t, run, reap.ExitClean)
			want := []string{"expired " + held[:8] + " Kept", "expired " + free[:8] + " Done"}
			if diff := cmp.Diff(want, results(document)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			return nil
		})
	})
	expectStatus(t, "prod", held, "running")
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	expectStatus(t, "prod", held, "expired")
	expectLeft(t)
}

func TestAnOrphanWhoseRowTurnsUpInTimeLives(t *testing.T) {
	clean(t)
	session := sessionID('z', 1)
	open(t, "prod", session)
	p := pass(t, "prod")
	made := plan(t, p, 2)
	insert(t, "prod", running(session))
	for _, item := range p.Apply(t.Context(), made).Items {
		if item.Result != reap.Kept {
			t.Errorf("%s: %s (%s), want Kept", item.Objects, item.Result, item.Detail)
		}
	}
	expectLeft(t, session)
}

func TestAMachineMadeAnewUnderTheSameNameLives(t *testing.T) {
	clean(t)
	orphan, ended := sessionID('z', 11), sessionID('z', 12)
	for _, session := range []string{orphan, ended} {
		open(t, "prod", session)
	}
	insert(t, "prod", expired(ended))
	p := pass(t, "prod")
	made := plan(t, p, 3)
	for _, session := range []string{orphan, ended} {
		lesson := backend.Lesson{Session: session, Environment: "prod"}
		if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Backends["prod"].Create(t.Context(), backend.VMContainerDisk, lesson); err != nil {
			t.Fatal(err)
		}
	}
	p.Apply(t.Context(), made)
	for _, session := range []string{orphan, ended} {
		if !exists(t, backend.Lesson{Session: session}.VMName()) {
			t.Errorf("the machine of session %s that was made anew is gone", session)
		}
	}
	expectStatus(t, "prod", ended, "running")
}

func TestAGhostWhoseMachineTurnsUpLives(t *testing.T) {
	clean(t)
	session := sessionID('z', 21)
	insert(t, "prod", running(session))
	p := pass(t, "prod")
	made := plan(t, p, 1)
	open(t, "prod", session)
	if item := result(t, p.Apply(t.Context(), made)); item.Result != reap.Kept {
		t.Errorf("item = %s (%s), want Kept", item.Result, item.Detail)
	}
	expectStatus(t, "prod", session, "running")
}

func TestAPanicInOneItemIsThatItemsFailure(t *testing.T) {
	clean(t)
	sessions := []string{sessionID('z', 31), sessionID('z', 32)}
	for _, session := range sessions {
		open(t, "prod", session)
		insert(t, "prod", expired(session))
	}
	p := pass(t, "prod")
	made := plan(t, p, 2)
	// No object of the cluster makes the code panic; this one, which no list gives, does.
	p.Cluster = panicky{ClusterAccess: p.Cluster, name: backend.Lesson{Session: sessions[0]}.VMName()}
	report := p.Apply(t.Context(), made)
	if report.ExitStatus() != reap.ExitItemsFailed {
		t.Errorf("exit status %d, want %d", report.ExitStatus(), reap.ExitItemsFailed)
	}
	expectStatus(t, "prod", sessions[0], "running")
	expectStatus(t, "prod", sessions[1], "expired")
}

type panicky struct {
	reap.ClusterAccess
	name string
}

func (p panicky) Delete(ctx context.Context, object reap.Object) error {
	if object.Kind == reap.VirtualMachine && object.Name == p.name {
		panic(fmt.Sprintf("cannot delete %s", p.name))
	}
	return p.ClusterAccess.Delete(ctx, object)
}
