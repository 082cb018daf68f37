package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/test/invariant"
	"github.com/ttlab/vmwarden/test/lab"
)

// record makes the databases note every change of their sessions until the test ends, and gives the moment from which on.
func record(t *testing.T) time.Time {
	t.Helper()
	for _, environment := range lab.Environments {
		query(t, environment, invariant.Record)
		t.Cleanup(func() {
			query(t, environment, invariant.StopRecording)
		})
	}
	return time.Now()
}

// expectInvariants judges all that happened since a moment, by the audit log and the recorded changes.
func expectInvariants(t *testing.T, since time.Time) {
	t.Helper()
	h := &invariant.History{ReaperRole: "reaper"}
	var err error
	if h.Configuration, err = config.Parse([]byte(lab.Config)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Open(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if h.Writes, err = invariant.ReadAudit(log); err != nil {
		t.Fatal(err)
	}
	h.Writes = slices.DeleteFunc(h.Writes, func(w invariant.Write) bool { return w.Arrived.Before(since) })
	for _, environment := range lab.Environments {
		query(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
			changes, err := invariant.Recorded(ctx, connection, environment)
			h.Changes = append(h.Changes, changes...)
			return err
		})
	}
	verdict := invariant.Check(h)
	for _, violation := range verdict.Violations {
		t.Errorf("%s was broken at %s: %s", violation.Invariant, violation.At, violation.What)
	}
	if verdict.Machines == 0 || verdict.Deletions == 0 || verdict.Changes == 0 {
		t.Errorf("too little happened to be judged: %+v", verdict)
	}
	t.Logf("no invariant broken in %d writes, %d machines, %d deletions, %d changes of rows", verdict.Writes, verdict.Machines, verdict.Deletions, verdict.Changes)
}
