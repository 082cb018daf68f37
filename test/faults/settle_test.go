package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/lab"
)

// patience bounds the wait for something that other processes do.
const patience = 2 * time.Minute

// await waits until condition holds. An error of condition is what it still waits for.
func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	// A clean-up has to wait too, and the test's own context has ended by then.
	ctx := context.WithoutCancel(t.Context())
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, errors.Join(err, last))
	}
}

func inDatabase(t *testing.T, environment string, work func(ctx context.Context, connection *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := shared.WithDatabase(ctx, environment, func(connection *pgx.Conn) error { return work(ctx, connection) }); err != nil {
		t.Fatal(err)
	}
}

// settle runs passes, as the next minutes would, until they have nothing more to do, and cluster and tables agree.
func settle(t *testing.T) {
	t.Helper()
	reapers := newReapers(t)
	await(t, "cluster and tables agree", func(ctx context.Context) error {
		for _, r := range reapers {
			if status := r.pass(ctx); status != 0 {
				return fmt.Errorf("a pass of %s ended with status %d", r.environment, status)
			}
		}
		return disagreement(ctx)
	})
}

// disagreement tells what the cluster and the tables do not agree about: a machine for every live session, and no other.
func disagreement(ctx context.Context) error {
	var live []string
	for _, environment := range lab.Environments {
		err := shared.WithDatabase(ctx, environment, func(connection *pgx.Conn) error {
			rows, err := connection.Query(ctx, `select id::text from sessions where status in ('starting', 'running')`)
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, pgx.RowTo[string])
			live = append(live, found...)
			return err
		})
		if err != nil {
			return err
		}
	}
	machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var standing []string
	for _, machine := range machines.Items {
		standing = append(standing, machine.Labels["ttlab.io/session"])
	}
	slices.Sort(live)
	slices.Sort(standing)
	if !slices.Equal(live, standing) {
		return fmt.Errorf("live are the sessions %v, and there are machines of %v", live, standing)
	}
	return nil
}

// empty takes away all that a school left.
func empty(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	clients, err := shared.Clients()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the lab's objects can be deleted", func(ctx context.Context) error {
		return errors.Join(
			shared.AdminBackend.Machines(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			clients.CoreV1().Secrets(lab.VMNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "ttlab.io/session"}),
		)
	})
	for _, environment := range lab.Environments {
		inDatabase(t, environment, func(ctx context.Context, connection *pgx.Conn) error {
			_, err := connection.Exec(ctx, `delete from sessions`)
			return err
		})
	}
	await(t, "the virtual machines are gone", func(ctx context.Context) error {
		machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(machines.Items) > 0 {
			err = fmt.Errorf("%d are left", len(machines.Items))
		}
		return err
	})
	// A create whose answer a fault swallowed holds its place for the reservation time, and the next school is to begin with all.
	_ = clients.CoreV1().ConfigMaps(lab.VMNamespace).Delete(ctx, ledger.ConfigMapName, metav1.DeleteOptions{}) // it may not be there
}
