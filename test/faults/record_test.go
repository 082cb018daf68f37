package faults

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/test/invariant"
	"github.com/ttlab/vmwarden/test/lab"
)

// record is what the invariants are judged by.
type record struct {
	// offset is where the audit log ended when it began.
	offset int64
}

func startRecord(t *testing.T) record {
	t.Helper()
	for _, environment := range lab.Environments {
		inDatabase(t, environment, invariant.Record)
	}
	log, err := os.Stat(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return record{offset: log.Size()}
}

func (r record) expectInvariants(t *testing.T, interruptions []time.Time) {
	t.Helper()
	h := &invariant.History{ReaperRole: "reaper", Interruptions: interruptions}
	var err error
	if h.Configuration, err = config.Parse([]byte(configuration)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Open(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Seek(r.offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if h.Writes, err = invariant.ReadAudit(log); err != nil {
		t.Fatal(err)
	}
	for _, environment := range lab.Environments {
		inDatabase(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
			changes, err := invariant.Recorded(ctx, connection, environment)
			h.Changes = append(h.Changes, changes...)
			return err
		})
	}
	verdict := invariant.Check(h)
	for _, violation := range verdict.Violations {
		t.Errorf("%s was broken at %s: %s", violation.Invariant, violation.At.UTC().Format(time.RFC3339Nano), violation.What)
	}
	if verdict.Machines == 0 || verdict.Deletions == 0 || verdict.Changes == 0 {
		t.Errorf("too little happened to be judged: %+v", verdict)
	}
	t.Logf("judged: %d writes, %d machines, %d deletions by reapers, %d changes of rows", verdict.Writes, verdict.Machines, verdict.Deletions, verdict.Changes)
}
