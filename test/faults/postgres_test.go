package faults

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/test/lab"
)

func databaseIsKilled(t *testing.T, _ *world) func() {
	must(t, shared.Postgres.Kill())
	return func() { must(t, shared.Postgres.Revive(context.WithoutCancel(t.Context()))) }
}

func databaseRestarts(t *testing.T, w *world) func() {
	w.during = func() error { return shared.Postgres.Restart(context.WithoutCancel(t.Context())) }
	return func() {}
}

func databaseIsPaused(t *testing.T, _ *world) func() {
	must(t, shared.Postgres.Pause())
	return func() { must(t, shared.Postgres.Resume()) }
}

// inDatabases runs a statement in the environments' databases, and ends all other connections to them, as a fail-over does.
func inDatabases(t *testing.T, statement func(environment string) string) {
	t.Helper()
	for _, environment := range lab.Environments {
		inDatabase(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
			if _, err := connection.Exec(ctx, statement(environment)); err != nil {
				return err
			}
			_, err := connection.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
			return err
		})
	}
}

func databaseIsReadOnly(t *testing.T, _ *world) func() {
	inDatabases(t, func(name string) string { return `alter database ` + name + ` set default_transaction_read_only = on` })
	return func() {
		for _, environment := range lab.Environments {
			inDatabase(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
				if _, err := connection.Exec(ctx, `set default_transaction_read_only = off`); err != nil {
					return err
				}
				_, err := connection.Exec(ctx, `alter database `+environment+` reset default_transaction_read_only`)
				return err
			})
		}
		// Whoever connected meanwhile is still read-only.
		inDatabases(t, func(string) string { return `select` })
	}
}

func databaseIsOutOfConnections(t *testing.T, _ *world) func() {
	inDatabases(t, func(string) string { return `alter role reaper connection limit 0` })
	return func() { inDatabases(t, func(string) string { return `alter role reaper connection limit -1` }) }
}
