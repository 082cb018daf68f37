package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/test/invariant"
)

// Recording is what happens in the lab from a moment on, by which the invariants are judged.
type Recording struct {
	lab *Lab
	// offset is where the audit log ended when it began.
	offset int64
}

// Record makes the databases note every change of their sessions from now on.
func (l *Lab) Record(ctx context.Context) (*Recording, error) {
	for _, environment := range Environments {
		if err := l.WithDatabase(ctx, environment, func(connection *pgx.Conn) error { return invariant.Record(ctx, connection) }); err != nil {
			return nil, err
		}
	}
	log, err := os.Stat(l.ControlPlane.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	return &Recording{lab: l, offset: log.Size()}, nil
}

// Verdict judges all that has happened since, under the configuration that everything of ours ran with. Interruptions are when an API
// server died.
func (r *Recording) Verdict(ctx context.Context, configuration string, interruptions []time.Time) (verdict invariant.Verdict, err error) {
	h := &invariant.History{ReaperRole: "reaper", Interruptions: interruptions}
	if h.Configuration, err = config.Parse([]byte(configuration)); err != nil {
		return verdict, fmt.Errorf("reading the configuration: %w", err)
	}
	log, err := os.Open(r.lab.ControlPlane.AuditLog())
	if err != nil {
		return verdict, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if _, err := log.Seek(r.offset, io.SeekStart); err != nil {
		return verdict, fmt.Errorf("finding the beginning of the recording: %w", err)
	}
	if h.Writes, err = invariant.ReadAudit(log); err != nil {
		return verdict, err
	}
	for _, environment := range Environments {
		if err := r.lab.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
			changes, err := invariant.Recorded(ctx, connection, environment)
			h.Changes = append(h.Changes, changes...)
			return err
		}); err != nil {
			return verdict, err
		}
	}
	return invariant.Check(h), nil
}
