package reap

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/internal/config"
)

const (
	// openTransaction bounds what follows in the transaction, and says where it runs: a connection that was made anew may
	// have met another server. $1: lock, $2: statement, $3: time zone, or an empty one for the database's own. The transaction
	// of the pass's lock waits in between by design.
	openTransaction = `select now(), coalesce(current_setting('` + fenceSetting + `', true), ''), current_setting('transaction_read_only') = 'on'
		from (select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
			set_config('idle_in_transaction_session_timeout', '0', true),
			set_config('TimeZone', coalesce(nullif($3, ''), current_setting('TimeZone')), true)) as limits`

	transactionLives = `select`

	takePassLock = `select pg_try_advisory_xact_lock(hashtextextended('vmwarden: pass', 0))`
)

// queries are the statements on the sessions table, with the configuration's names quoted in. Each statement that writes
// carries its own guard: what it relies on is checked where it is written.
type queries struct {
	// readSessions: $1 words that mean over. A NULL or unknown status is not known to be over.
	readSessions string
	// lockExpired: $1 id, $2 live words.
	lockExpired string
	// writeExpired: $1 id, $2 live words, $3 expired.
	writeExpired string
	// isLive: $1 id as text, $2 words that mean over.
	isLive string
	// writeFailed: $1 id, $2 running, $3 name of the virtual machine, $4 grace in seconds, $5 failed.
	writeFailed string
}

func newQueries(database config.Database) queries {
	table := pgx.Identifier{database.Table}
	if database.Schema != "" {
		table = pgx.Identifier{database.Schema, database.Table}
	}
	quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	names := strings.NewReplacer(
		"{table}", table.Sanitize(),
		"{id}", quoted(database.Columns.ID),
		"{runtime}", quoted(database.Columns.Runtime),
		"{status}", quoted(database.Columns.Status),
		"{vm_name}", quoted(database.Columns.VMName),
		"{started_at}", quoted(database.Columns.StartedAt),
		"{expires_at}", quoted(database.Columns.ExpiresAt),
		"{finished_at}", quoted(database.Columns.FinishedAt),
	)
	return queries{
		readSessions: names.Replace(`
			select {id}::text, {runtime}::text, {status}::text, {vm_name}::text, {started_at}::timestamptz, {expires_at}::timestamptz,
				coalesce({expires_at} <= now(), false), pg_typeof({started_at})::text, pg_typeof({expires_at})::text
			from {table}
			where ({status}::text = any($1)) is not true`),
		lockExpired: names.Replace(`
			select true from {table}
			where {id} = $1 and {status}::text = any($2) and {expires_at} <= now()
			for update skip locked`),
		writeExpired: names.Replace(`
			update {table} set {status} = $3, {finished_at} = now()
			where {id} = $1 and {status}::text = any($2) and {expires_at} <= now()`),
		isLive: names.Replace(`
			select exists (select from {table} where {id}::text = $1 and ({status}::text = any($2)) is not true)`),
		writeFailed: names.Replace(`
			update {table} set {status} = $5, {finished_at} = now()
			where {id} = $1 and {status}::text = $2 and {vm_name} = $3 and {started_at} <= now() - make_interval(secs => $4)`),
	}
}
