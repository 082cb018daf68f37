package invariant

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// recorder notes every change of the backend's sessions table in a table of its own.
//
//go:embed recorder.sql
var recorder string

// Record makes a database note every change of its sessions from now on, and forget what it noted before. It needs the owner's rights:
// it is the test's, never vmwarden's.
func Record(ctx context.Context, connection *pgx.Conn) error {
	if _, err := connection.Exec(ctx, recorder); err != nil {
		return fmt.Errorf("making the database note its changes: %w", err)
	}
	return nil
}

// Recorded gives what an environment's database noted.
func Recorded(ctx context.Context, connection *pgx.Conn, environment string) ([]Change, error) {
	rows, err := connection.Query(ctx, `select at, by, session, before, after from recorded_changes order by number`)
	if err != nil {
		return nil, fmt.Errorf("reading the noted changes: %w", err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Change, error) {
		c := Change{Environment: environment}
		err := row.Scan(&c.At, &c.By, &c.Session, &c.Before, &c.After)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the noted changes: %w", err)
	}
	return changes, nil
}

// StopRecording takes the recorder away, with what it noted.
func StopRecording(ctx context.Context, connection *pgx.Conn) error {
	_, err := connection.Exec(ctx, `drop trigger record_change on sessions; drop function record_change, recorded_row; drop table recorded_changes`)
	if err != nil {
		return fmt.Errorf("taking the recorder away: %w", err)
	}
	return nil
}
