package reap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ttlab/vmwarden/internal/config"
)

// lockTimeout is how long a statement may wait for a lock that somebody holds on the table. Rows that are locked are passed
// over without waiting.
const lockTimeout = 2 * time.Second

// fenceSetting is how a database says which environment it is of.
const fenceSetting = "vmwarden.environment"

// PostgresStore reads and ends sessions in an environment's database. Every statement runs in a transaction of its own, with
// nothing kept between transactions, so that it works through PgBouncer in transaction mode.
type PostgresStore struct {
	pool     *pgxpool.Pool
	queries  queries
	database config.Database
	// environment is whose database this has to be for more than a look.
	environment string
}

// OpenStore prepares the store of an environment; it connects when it is first used. The URL is a PostgreSQL URL or key/value
// string; what it leaves open comes from the standard PG* variables. Its errors never show the password.
func OpenStore(ctx context.Context, url string, database config.Database, environment string, concurrency int32) (*PostgresStore, error) {
	pool, err := parseDatabaseURL(url)
	if err != nil {
		return nil, err
	}
	// Times without a zone are in database.timeZone, whatever PGTZ says on this machine.
	delete(pool.ConnConfig.RuntimeParams, "timezone")
	// One for each item at work, one for the lock that keeps a second pass away, one for reading.
	pool.MaxConns = concurrency + 2
	// The server tells the parameters' types, so that an id may be a uuid or text and a status an enum, once for each connection; and the
	// statement has no name, since under PgBouncer the next transaction may meet another server connection.
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pool.ConnConfig.RuntimeParams["application_name"] = "vmwarden-reapjob"
	opened, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("preparing the database connections: %w", err)
	}
	return &PostgresStore{pool: opened, queries: newQueries(database), database: database, environment: environment}, nil
}

// CheckDatabaseURL says what is wrong with a URL, or with the PG* variables that complete it, before anything is done with it.
func CheckDatabaseURL(url string) error {
	_, err := parseDatabaseURL(url)
	return err
}

func parseDatabaseURL(url string) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %s; write it as postgres://USER:PASSWORD@HOST:5432/DATABASE", withoutURL(err))
	}
	for name, value := range pool.ConnConfig.RuntimeParams {
		if strings.Contains(strings.ToLower(name+" "+value), fenceSetting) {
			// The fence is the database's word. One that the client brings along would fit every database.
			return nil, fmt.Errorf("the database URL (or PGOPTIONS) sets %s; only the database itself may: ALTER DATABASE … SET %s = …", fenceSetting, fenceSetting)
		}
	}
	return pool, nil
}

// withoutURL is why a URL could not be read, without the URL: what pgx takes for no password in it, and shows, may be one all the same.
func withoutURL(err error) string {
	text := err.Error()
	return strings.TrimPrefix(text[strings.LastIndexByte(text, '`')+1:], ": ")
}

// Close ends all connections, or gives up when the context ends: a server that hangs does not say good-bye.
func (s *PostgresStore) Close(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// opening is what a transaction learns at its start.
type opening struct {
	now      time.Time
	fence    string
	readOnly bool
}

// transaction runs work in a transaction whose statements do not outlast the context on the server either: a cancelled client
// alone would leave the server waiting on.
func (s *PostgresStore) transaction(ctx context.Context, options pgx.TxOptions, work func(pgx.Tx, opening) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		statementTimeout := time.Duration(0)
		if deadline, limited := ctx.Deadline(); limited {
			statementTimeout = max(time.Until(deadline), time.Millisecond)
		}
		start, err := s.open(ctx, tx, statementTimeout)
		if err != nil {
			return err
		}
		return work(tx, start)
	})
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

func (s *PostgresStore) open(ctx context.Context, tx pgx.Tx, statementTimeout time.Duration) (opening, error) {
	var start opening
	row := tx.QueryRow(ctx, openTransaction, milliseconds(lockTimeout), milliseconds(statementTimeout), s.database.TimeZone)
	if err := row.Scan(&start.now, &start.fence, &start.readOnly); err != nil {
		return opening{}, fmt.Errorf("setting the time limits: %w", err)
	}
	return start, nil
}

// act is a transaction that ends in a deletion or a write. Each looks at the fence for itself: between the reading and this
// item the connection may have been made anew, to a database that was switched over.
func (s *PostgresStore) act(ctx context.Context, work func(pgx.Tx) error) error {
	return s.transaction(ctx, pgx.TxOptions{}, func(tx pgx.Tx, start opening) error {
		if start.fence != s.environment {
			return errors.New(fenceReason(start.fence, s.environment))
		}
		if start.readOnly {
			return errors.New(readOnlyReason)
		}
		return work(tx)
	})
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func (s *PostgresStore) over() []string {
	return append([]string{s.database.Statuses.Expired, s.database.Statuses.Failed}, s.database.Statuses.Ended...)
}

func (s *PostgresStore) liveWords() []string {
	return []string{s.database.Statuses.Starting, s.database.Statuses.Running}
}

// Read gives the fence, the clock and all rows that are not known to be over. A row that cannot be read, or an answer that
// stops half way, is an error: fewer rows would make orphans of what they protect.
func (s *PostgresStore) Read(ctx context.Context) (Rows, error) {
	var rows Rows
	err := s.transaction(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx, start opening) error {
		rows.Now, rows.Fence, rows.ReadOnly = start.now, start.fence, start.readOnly
		if start.fence != s.environment {
			// Its table is none of ours, and may look otherwise.
			return nil
		}
		found, err := tx.Query(ctx, s.queries.readSessions, s.over())
		if err != nil {
			return fmt.Errorf("reading the sessions: %w", err)
		}
		rows.Sessions, err = pgx.CollectRows(found, s.scanSession)
		if err != nil {
			return fmt.Errorf("reading the sessions: %w", err)
		}
		return expectDistinct(rows.Sessions)
	})
	if err != nil {
		return Rows{}, err
	}
	return rows, nil
}

// expectDistinct refuses an id that two live rows share, as a view that joins may give them: one may have ended while the other
// goes on.
func expectDistinct(sessions []Session) error {
	seen := make(map[string]bool, len(sessions))
	for _, session := range sessions {
		if seen[session.ID] {
			return fmt.Errorf("two sessions have the id %s; each row has to be one session", session.ID)
		}
		seen[session.ID] = true
	}
	return nil
}

func (s *PostgresStore) scanSession(row pgx.CollectableRow) (Session, error) {
	var session Session
	var id, runtime, status, vmName pgtype.Text
	var startedAt, expiresAt pgtype.Timestamptz
	var startedType, expiresType string
	if err := row.Scan(&id, &runtime, &status, &vmName, &startedAt, &expiresAt, &session.PastEnd, &startedType, &expiresType); err != nil {
		return Session{}, err
	}
	for column, columnType := range map[string]string{s.database.Columns.StartedAt: startedType, s.database.Columns.ExpiresAt: expiresType} {
		if err := s.expectTime(column, columnType); err != nil {
			return Session{}, err
		}
	}
	if !id.Valid {
		return Session{}, errors.New("a session has no id")
	}
	session.ID, session.Runtime, session.Status, session.VMName = id.String, runtime.String, status.String, vmName.String
	session.StartedAt, session.ExpiresAt = finite(startedAt), finite(expiresAt)
	return session, nil
}

// expectTime refuses a column whose values name no moment by themselves, unless the configuration says in which zone they are:
// read in a wrong one, a lesson of an hour would have ended nine hours ago.
func (s *PostgresStore) expectTime(column, columnType string) error {
	switch {
	case columnType == "timestamp with time zone":
		return nil
	case columnType != "timestamp without time zone":
		return fmt.Errorf("column %q is a %s, not a timestamp", column, columnType)
	case s.database.TimeZone == "":
		return fmt.Errorf("column %q is a timestamp without time zone; say in database.timeZone in which one the backend writes it", column)
	}
	return nil
}

// finite is the point in time, or nil for NULL, for infinity and -infinity, and for a year that no calendar on a screen shows.
func finite(t pgtype.Timestamptz) *time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return nil
	}
	if year := t.Time.UTC().Year(); year < 1 || year > 9999 {
		return nil
	}
	return &t.Time
}

// errLeft rolls a transaction back whose work found a reason to leave the row as it is.
var errLeft = errors.New("left as it is")

// Expire is SessionStore's.
func (s *PostgresStore) Expire(ctx context.Context, id string, work LockedWork) (left string, err error) {
	var workErr error
	err = s.act(ctx, func(tx pgx.Tx) error {
		var locked bool
		err := tx.QueryRow(ctx, s.queries.lockExpired, id, s.liveWords()).Scan(&locked)
		if errors.Is(err, pgx.ErrNoRows) {
			left = "its row is locked by somebody else, or was extended or ended meanwhile"
			return nil
		}
		if err != nil {
			return fmt.Errorf("locking the row: %w", err)
		}
		left, workErr = work(ctx, func(ctx context.Context) error { return stillInTransaction(ctx, tx) })
		if workErr != nil {
			return workErr
		}
		if left != "" {
			return errLeft
		}
		tag, err := tx.Exec(ctx, s.queries.writeExpired, id, s.liveWords(), s.database.Statuses.Expired)
		if err != nil {
			return fmt.Errorf("writing that the session expired: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("writing that the session expired: %d rows have its id", tag.RowsAffected())
		}
		return nil
	})
	switch {
	case workErr != nil:
		return "", workErr
	case errors.Is(err, errLeft):
		return left, nil
	}
	return left, err
}

// stillInTransaction fails where the transaction, and so every lock that it took, is gone: with the server, with the connection, or
// with a pooler that thought it idle.
func stillInTransaction(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, transactionLives); err != nil {
		return fmt.Errorf("asking whether the row is still locked: %w", err)
	}
	return nil
}

// Live is SessionStore's.
func (s *PostgresStore) Live(ctx context.Context, id string) (live bool, err error) {
	err = s.act(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.queries.isLive, id, s.over()).Scan(&live); err != nil {
			return fmt.Errorf("asking for the session: %w", err)
		}
		return nil
	})
	return live, err
}

// Fail is SessionStore's.
func (s *PostgresStore) Fail(ctx context.Context, id, vmName string, grace time.Duration) (failed bool, err error) {
	err = s.act(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.queries.writeFailed, id, s.database.Statuses.Running, vmName, grace.Seconds(), s.database.Statuses.Failed)
		if err != nil {
			return fmt.Errorf("writing that the session failed: %w", err)
		}
		failed = tag.RowsAffected() == 1
		return nil
	})
	return failed, err
}

// goodbye bounds how long the end of the pass's lock may take: it is released with the connection in any case.
const goodbye = 2 * time.Second

// Alone takes the lock that keeps a second pass away, within limit, and holds it for as long as work runs. It reports false,
// and does not run work, where another pass has the lock. An error means that work was not run. The lock is a transaction's:
// PgBouncer in transaction mode gives away a session's.
func (s *PostgresStore) Alone(ctx context.Context, limit time.Duration, work func()) (alone bool, err error) {
	acquire, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tx, err := s.pool.BeginTx(acquire, pgx.TxOptions{})
	if err != nil {
		return false, fmt.Errorf("database: beginning the transaction of the pass's lock: %w", err)
	}
	// Whatever becomes of this transaction, it wrote nothing, and the lock ends with it or with its connection.
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		_ = tx.Rollback(end)
	}()
	if _, err := s.open(acquire, tx, limit); err != nil {
		return false, fmt.Errorf("database: %w", err)
	}
	if err := tx.QueryRow(acquire, takePassLock).Scan(&alone); err != nil {
		return false, fmt.Errorf("database: taking the lock of the pass: %w", err)
	}
	if alone {
		work()
	}
	return alone, nil
}
