// Package store tests the pass's access to the sessions table on a real PostgreSQL, directly and through a real PgBouncer.
package store

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/postgres"
)

const (
	reaper   = "reaper"
	password = "reaper"
)

var server *postgres.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	var err error
	if server, err = postgres.Start(context.Background(), postgres.Options{Progress: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping PostgreSQL:", err)
			status = 1
		}
	}()
	return m.Run()
}

// The ids of the tests' rows.
const (
	first  = "a0000000-0000-4000-8000-000000000001"
	second = "a1000000-0000-4000-8000-000000000002"
	third  = "a2000000-0000-4000-8000-000000000003"
)

// database makes a database of its own for a test, fenced as prod's, with the role of the reaper.
func database(t *testing.T, statements ...string) (name string) {
	t.Helper()
	name = fmt.Sprintf("db%d", time.Now().UnixNano())
	if err := server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	execute(t, name,
		`do $$ begin create role reaper login password 'reaper'; exception when duplicate_object then null; end $$`,
		`alter database `+name+` set vmwarden.environment = 'prod'`)
	execute(t, name, statements...)
	return name
}

// backendsTable are the statements that make the backend's own table, empty, with the documented grant.
func backendsTable() []string {
	return []string{backend.Text(backend.Sessions), `delete from sessions`, grant}
}

// grant is what docs/reaping.md tells the database's owner to run.
const grant = `grant select, update (status, finished_at) on sessions to reaper`

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context has ended, and the test may have broken the connection.
		_ = connection.Close(context.WithoutCancel(t.Context()))
	})
	return connection
}

func execute(t *testing.T, name string, statements ...string) {
	t.Helper()
	connection := connect(t, server.URL(name))
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := connection.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// value gives a single value as text.
func value(t *testing.T, name, query string, arguments ...any) (text string) {
	t.Helper()
	if err := connect(t, server.URL(name)).QueryRow(t.Context(), query, arguments...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// mapping is a configuration's database section, on top of the defaults.
func mapping(t *testing.T, section string) config.Database {
	t.Helper()
	parsed, err := config.Parse([]byte(`
apiVersion: config.vmwarden.io/v1alpha1
kind: WardenConfig
vmNamespace: lab-vms
environments: [{name: prod, backends: [{namespace: ttlab-prod, name: backend}]}]
` + section))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Database
}

func open(t *testing.T, url string, database config.Database) *reap.PostgresStore {
	t.Helper()
	store, err := reap.OpenStore(t.Context(), url, database, "prod", 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		store.Close(ctx)
	})
	return store
}

func reaperURL(name string) string { return server.URLFor(name, reaper, password) }

// plain opens the backend's table of a database as its reaper.
func plain(t *testing.T, name string) *reap.PostgresStore {
	t.Helper()
	return open(t, reaperURL(name), mapping(t, ""))
}

func read(t *testing.T, store *reap.PostgresStore) reap.Rows {
	t.Helper()
	rows, err := store.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// nothing is the work on a session that owns nothing.
func nothing(context.Context, func(context.Context) error) (string, error) { return "", nil }
