package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/test/backend"
)

// reaperPassword is the password of the databases' role reaper.
const reaperPassword = "reaper"

// createDatabase makes an environment's database with the backend's own table and rows, its fence, and a role for its reaper
// that may do what the reaper needs and nothing else.
func (l *Lab) createDatabase(ctx context.Context, environment string) error {
	if err := l.Postgres.CreateDatabase(ctx, environment); err != nil {
		return err
	}
	return l.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
		statements := []string{
			// Roles are the server's, not the database's: the second environment finds it made.
			`do $$ begin create role reaper login password '` + reaperPassword + `'; exception when duplicate_object then null; end $$`,
			`alter database ` + pgx.Identifier{environment}.Sanitize() + ` set vmwarden.environment = '` + environment + `'`,
			backend.Text(backend.Sessions),
			`delete from sessions`,
			`grant select, update (status, finished_at) on sessions to reaper`,
		}
		for _, statement := range statements {
			if _, err := connection.Exec(ctx, statement); err != nil {
				return fmt.Errorf("preparing database %s: %w", environment, err)
			}
		}
		return nil
	})
}

// WithDatabase runs work as the owner of an environment's database.
func (l *Lab) WithDatabase(ctx context.Context, environment string, work func(*pgx.Conn) error) error {
	connection, err := pgx.Connect(ctx, l.Postgres.URL(environment))
	if err != nil {
		return fmt.Errorf("connecting to database %s: %w", environment, err)
	}
	return errors.Join(work(connection), connection.Close(ctx))
}

// ReaperURL is how an environment's reaper connects to a database.
func (l *Lab) ReaperURL(database string) string {
	return l.Postgres.URLFor(database, "reaper", reaperPassword)
}
