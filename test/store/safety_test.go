package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/reap"
)

const expiredRow = `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
	values ('` + first + `', 'u1', 'x', 'vm', 'running', 'lab-a', now() - interval '61 min', now() - interval '1 min')`

// expectUntouched asks the store for every deletion and write, and expects each to be refused before its work.
func expectUntouched(t *testing.T, store *reap.PostgresStore, db, mention string) {
	t.Helper()
	_, expireErr := store.Expire(t.Context(), first, func(context.Context, func(context.Context) error) (string, error) {
		t.Error("the session's objects would have been deleted")
		return "", nil
	})
	_, liveErr := store.Live(t.Context(), first)
	_, failErr := store.Fail(t.Context(), first, "lab-a", time.Minute)
	for what, err := range map[string]error{"expiring": expireErr, "asking before an orphan is deleted": liveErr, "failing": failErr} {
		if err == nil || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v, want %q in it", what, err, mention)
		}
	}
	if got := value(t, db, `select status from sessions`); got != "running" {
		t.Errorf("the session is %q", got)
	}
}

func TestAReadOnlyDatabaseIsNotBelieved(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow)...)
	store := plain(t, db)
	// As the administrator of a fail-over sets it; a real standby answers the same to transaction_read_only.
	execute(t, db, `alter database `+db+` set default_transaction_read_only = on`)
	if rows := read(t, store); !rows.ReadOnly {
		t.Error("the reading does not say that the database is read-only")
	}
	expectUntouched(t, store, db, "read-only")
}

func TestADatabaseThatIsSwitchedDuringAPassIsFenced(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow)...)
	store := plain(t, db)
	if rows := read(t, store); rows.Fence != "prod" || len(rows.Sessions) != 1 {
		t.Fatalf("rows = %+v", rows)
	}
	// The next connections meet another environment's database under the same address.
	execute(t, db, `alter database `+db+` set vmwarden.environment = 'dev'`)
	execute(t, db, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	// The pool's only connection is the broken one; whoever takes it next fails.
	if _, err := store.Read(t.Context()); err == nil {
		t.Fatal("the connection outlived its server process")
	}
	expectUntouched(t, store, db, `environment "dev"`)
	if rows := read(t, store); rows.Fence != "dev" || len(rows.Sessions) != 0 {
		t.Errorf("rows = %+v, want dev's fence and none of its rows", rows)
	}
}

func TestTheClientCannotBringTheFenceAlong(t *testing.T) {
	for _, parameter := range []string{"vmwarden.environment=prod", "options=-c%20vmwarden.environment%3Dprod", "options=-c%20VMWarden.Environment%3Dprod"} {
		url := reaperURL("postgres") + "&" + parameter
		if _, err := reap.OpenStore(t.Context(), url, mapping(t, ""), "prod", 1); err == nil || !strings.Contains(err.Error(), "only the database itself") {
			t.Errorf("%s: %v", parameter, err)
		}
	}
	t.Setenv("PGOPTIONS", "-c vmwarden.environment=prod")
	if _, err := reap.OpenStore(t.Context(), reaperURL("postgres"), mapping(t, ""), "prod", 1); err == nil {
		t.Error("PGOPTIONS set the fence")
	}
}

// TestTheGrantIsEnoughAndNoMore runs what the documented grant must not allow. That it is enough the other tests show.
func TestTheGrantIsEnoughAndNoMore(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow, `create table grades (student text)`)...)
	connection := connect(t, reaperURL(db))
	for _, statement := range []string{
		`insert into sessions (id, user_id, lesson_id, runtime, status) values (gen_random_uuid(), 'x', 'x', 'vm', 'running')`,
		`delete from sessions`,
		`truncate sessions`,
		`update sessions set expires_at = now()`,
		`update sessions set vm_name = 'other'`,
		`update sessions set user_id = 'other'`,
		`alter table sessions add column x int`,
		`create table mine (x int)`,
		`create schema mine`,
		`select * from grades`,
		`alter database ` + db + ` set vmwarden.environment = 'dev'`,
		`create role friend`,
	} {
		if _, err := connection.Exec(t.Context(), statement); err == nil {
			t.Errorf("the reaper's role may: %s", statement)
		}
	}
}

func TestWorkThatFailsOrKeepsLeavesTheRow(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow)...)
	store := plain(t, db)
	broken := errors.New("broken")
	if _, err := store.Expire(t.Context(), first, func(context.Context, func(context.Context) error) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("error = %v, want the work's own", err)
	}
	left, err := store.Expire(t.Context(), first, func(context.Context, func(context.Context) error) (string, error) { return "made anew", nil })
	if left != "made anew" || err != nil {
		t.Errorf("left %q, %v", left, err)
	}
	if got := value(t, db, `select status from sessions`); got != "running" {
		t.Errorf("the session is %q", got)
	}
}

func TestThroughPgBouncerInTransactionMode(t *testing.T) {
	db := database(t, backendsTable()...)
	for i, id := range []string{first, second, third} {
		ends := []string{"- interval '1 min'", "+ interval '30 min'", "+ interval '30 min'"}[i]
		execute(t, db, fmt.Sprintf(`insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
			values ('%s', '%[1]s', 'x', 'vm', 'running', 'lab-%s', now() - interval '30 min', now() %s)`, id, id[:8], ends))
	}
	bouncer, err := server.StartPgBouncer(t.Context(), reaper, password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bouncer.Stop(); err != nil {
			t.Error(err)
		}
	})
	store := open(t, bouncer.URL(db), mapping(t, ""))
	alone, err := store.Alone(t.Context(), 10*time.Second, func() {
		// A second pass through the same PgBouncer, and so perhaps over the same server connections.
		other := open(t, bouncer.URL(db), mapping(t, ""))
		if second, err := other.Alone(t.Context(), 10*time.Second, func() { t.Error("two passes ran at once") }); err != nil || second {
			t.Errorf("the second pass: alone %t, %v", second, err)
		}
		expectContract(t, store, func(id string) string { return value(t, db, `select status from sessions where id = $1`, id) })
	})
	if err != nil || !alone {
		t.Fatalf("alone = %t, %v", alone, err)
	}
	// The limits of a transaction end with it: the next client of the same server connection must not inherit them.
	connection := connect(t, bouncer.URL(db))
	var limits string
	err = connection.QueryRow(t.Context(), `select current_setting('statement_timeout') || current_setting('lock_timeout') || current_setting('TimeZone')`, pgx.QueryExecModeSimpleProtocol).Scan(&limits)
	if err != nil || limits != "00UTC" {
		t.Errorf("limits = %q, %v", limits, err)
	}
}

func TestAStatementDoesNotOutlastItsItem(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow)...)
	holder := connect(t, server.URL(db))
	if _, err := holder.Exec(t.Context(), `begin; lock table sessions in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := plain(t, db).Read(ctx); err == nil {
		t.Fatal("a locked table was read")
	}
	// The server itself has given up too: nobody waits for the lock.
	waiting := connect(t, server.URL(db))
	for {
		var n int
		if err := waiting.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// A lock goes with its connection, and the session that it protected may be extended the moment after.
func TestALockThatIsGoneIsNoticedBeforeTheNextDeletion(t *testing.T) {
	db := database(t, append(backendsTable(), expiredRow)...)
	store := plain(t, db)
	_, err := store.Expire(t.Context(), first, func(ctx context.Context, stillLocked func(context.Context) error) (string, error) {
		if err := stillLocked(ctx); err != nil {
			t.Errorf("while the row is locked: %v", err)
		}
		execute(t, db, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		err := stillLocked(ctx)
		if err == nil {
			t.Error("nobody noticed that the lock is gone")
		}
		return "", err
	})
	if err == nil || !strings.Contains(err.Error(), "still locked") {
		t.Errorf("expiring: %v, want to read that the row may not be locked any more", err)
	}
	if got := value(t, db, `select status from sessions`); got != "running" {
		t.Errorf("the session is %q", got)
	}
}
