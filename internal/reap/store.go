package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ttlab/vmwarden/internal/config"
)

// lockTimeout is how long a statement may wait for a lock that somebody holds on the table. Rows that are locked are passed
// over without waiting.
const lockTimeout = 2 * time.Second

// PostgresStore reads and ends sessions in an environment's database. Every statement runs in a transaction of its own, with
// nothing kept between transactions, so that it works through PgBouncer in transaction mode.
type PostgresStore struct {
	pool    *pgxpool.Pool
	queries queries
	words   config.Statuses
}

// OpenStore prepares the store; it connects when it is first used. The URL is a PostgreSQL URL or key/value string; what it
// leaves open comes from the standard PG* variables. Its errors never show the password.
func OpenStore(ctx context.Context, url string, database config.Database, concurrency int32) (*PostgresStore, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	// One for each item at work, one for the lock that keeps a second pass away, one for reading.
	pool.MaxConns = concurrency + 2
	// The server tells the parameters' types, so that an id may be a uuid or text and a status an enum; and the statement
	// has no name, since under PgBouncer the next transaction may meet another server connection.
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pool.ConnConfig.RuntimeParams["application_name"] = "vmwarden-reapjob"
	opened, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("preparing the database connections: %w", err)
	}
	return &PostgresStore{pool: opened, queries: newQueries(database), words: database.Statuses}, nil
}

// Close ends all connections.
func (s *PostgresStore) Close() { s.pool.Close() }

// transaction runs work in a transaction whose statements do not outlast the context on the server either: a cancelled client
// alone would leave the server waiting on.
func (s *PostgresStore) transaction(ctx context.Context, options pgx.TxOptions, work func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		statementTimeout := time.Duration(0)
		if deadline, limited := ctx.Deadline(); limited {
			statementTimeout = max(time.Until(deadline), time.Millisecond)
		}
		if _, err := tx.Exec(ctx, setTimeouts, milliseconds(lockTimeout), milliseconds(statementTimeout)); err != nil {
			return fmt.Errorf("setting the time limits: %w", err)
		}
		return work(tx)
	})
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func (s *PostgresStore) over() []string {
	return append([]string{s.words.Expired, s.words.Failed}, s.words.Ended...)
}

func (s *PostgresStore) liveWords() []string { return []string{s.words.Starting, s.words.Running} }

// Read gives the fence, the clock and all rows that are not known to be over. A row that cannot be read, or an answer that
// stops half way, is an error: fewer rows would make orphans of what they protect.
func (s *PostgresStore) Read(ctx context.Context) (Rows, error) {
	var rows Rows
	err := s.transaction(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, readFence).Scan(&rows.Fence, &rows.Now); err != nil {
			return fmt.Errorf("reading the fence: %w", err)
		}
		found, err := tx.Query(ctx, s.queries.readSessions, s.over())
		if err != nil {
			return fmt.Errorf("reading the sessions: %w", err)
		}
		rows.Sessions, err = pgx.CollectRows(found, scanSession)
		if err != nil {
			return fmt.Errorf("reading the sessions: %w", err)
		}
		return nil
	})
	if err != nil {
		return Rows{}, err
	}
	return rows, nil
}

func scanSession(row pgx.CollectableRow) (Session, error) {
	var session Session
	var id, runtime, status, vmName pgtype.Text
	var startedAt, expiresAt pgtype.Timestamptz
	if err := row.Scan(&id, &runtime, &status, &vmName, &startedAt, &expiresAt, &session.PastEnd); err != nil {
		return Session{}, err
	}
	if !id.Valid {
		return Session{}, errors.New("a session has no id")
	}
	session.ID, session.Runtime, session.Status, session.VMName = id.String, runtime.String, status.String, vmName.String
	session.StartedAt, session.ExpiresAt = finite(startedAt), finite(expiresAt)
	return session, nil
}

// finite is the point in time, or nil for NULL, infinity and -infinity.
func finite(t pgtype.Timestamptz) *time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return nil
	}
	return &t.Time
}

// Expire is SessionStore's.
func (s *PostgresStore) Expire(ctx context.Context, id string, work func(context.Context) error) (left string, err error) {
	var workErr error
	err = s.transaction(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var locked bool
		err := tx.QueryRow(ctx, s.queries.lockExpired, id, s.liveWords()).Scan(&locked)
		if errors.Is(err, pgx.ErrNoRows) {
			left = "its row is locked by somebody else, or was extended or ended meanwhile"
			return nil
		}
		if err != nil {
			return fmt.Errorf("locking the row: %w", err)
		}
		workErr = work(ctx)
		if workErr != nil {
			return workErr
		}
		tag, err := tx.Exec(ctx, s.queries.writeExpired, id, s.liveWords(), s.words.Expired)
		if err != nil {
			return fmt.Errorf("writing that the session expired: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("writing that the session expired: %d rows have its id", tag.RowsAffected())
		}
		return nil
	})
	if workErr != nil {
		return "", workErr
	}
	return left, err
}

// Live is SessionStore's.
func (s *PostgresStore) Live(ctx context.Context, id string) (live bool, err error) {
	err = s.transaction(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.queries.isLive, id, s.over()).Scan(&live); err != nil {
			return fmt.Errorf("asking for the session: %w", err)
		}
		return nil
	})
	return live, err
}

// Fail is SessionStore's.
func (s *PostgresStore) Fail(ctx context.Context, id, vmName string, grace time.Duration) (failed bool, err error) {
	err = s.transaction(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.queries.writeFailed, id, s.words.Running, vmName, grace.Seconds(), s.words.Failed)
		if err != nil {
			return fmt.Errorf("writing that the session failed: %w", err)
		}
		failed = tag.RowsAffected() == 1
		return nil
	})
	return failed, err
}

// Alone takes the lock that keeps a second pass away, within limit, and holds it for as long as work runs. It reports false,
// and does not run work, where another pass has the lock. An error means that work was not run. The lock is a transaction's:
// PgBouncer in transaction mode gives away a session's.
func (s *PostgresStore) Alone(ctx context.Context, limit time.Duration, work func()) (alone bool, err error) {
	acquire, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tx, err := s.pool.BeginTx(acquire, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return false, fmt.Errorf("database: beginning the transaction of the pass's lock: %w", err)
	}
	// Whatever becomes of this transaction, it wrote nothing, and the lock ends with it or with its connection.
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		_ = tx.Rollback(end)
	}()
	if _, err := tx.Exec(acquire, setTimeouts, milliseconds(lockTimeout), milliseconds(limit)); err != nil {
		return false, fmt.Errorf("database: setting the time limits: %w", err)
	}
	if err := tx.QueryRow(acquire, takePassLock).Scan(&alone); err != nil {
		return false, fmt.Errorf("database: taking the lock of the pass: %w", err)
	}
	if alone {
		work()
	}
	return alone, nil
}
