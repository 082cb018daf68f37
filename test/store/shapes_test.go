package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/internal/reap"
)

// TestASessionsTableMayLookOtherwise runs the whole contract on tables of other shapes: three rows, the first expired, the second
// running well, the third a ghost.
func TestASessionsTableMayLookOtherwise(t *testing.T) {
	const rows = `values
		('` + first + `', 'vm', 'running', 'lab-a0000000', now() - interval '61 min', now() - interval '1 min'),
		('` + second + `', 'vm', 'running', 'lab-a1000000', now() - interval '30 min', now() + interval '30 min'),
		('` + third + `', 'vm', 'running', 'lab-a2000000', now() - interval '30 min', now() + interval '30 min')`
	const columns = `id, runtime, status, vm_name, started_at, expires_at`
	// fill inserts the rows and casts what needs it.
	fill := func(table, columns, cast string) string {
		return `insert into ` + table + ` (` + columns + `) select ` + cast + ` from (` + rows + `) as r(id, runtime, status, vm_name, started_at, expires_at)`
	}
	for name, c := range map[string]struct {
		statements []string
		section    string
		// status reads a row's status, by its id.
		status string
	}{
		"the backend's own": {
			statements: []string{`create table sessions (id uuid primary key, runtime text, status text, vm_name text, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
				fill("sessions", columns, "id::uuid, runtime, status, vm_name, started_at, expires_at"), grant},
			status: `select status from sessions where id = $1`,
		},
		"text ids": {
			statements: []string{`create table sessions (id text primary key, runtime text, status varchar(20), vm_name varchar, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
				fill("sessions", columns, "*"), grant},
			status: `select status from sessions where id = $1`,
		},
		"enums": {
			statements: []string{`create type state as enum ('starting', 'running', 'finished', 'expired', 'failed')`, `create type kind as enum ('vm', 'pod')`,
				`create table sessions (id uuid primary key, runtime kind, status state, vm_name text, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
				fill("sessions", columns, "id::uuid, runtime::kind, status::state, vm_name, started_at, expires_at"), grant},
			status: `select status::text from sessions where id = $1`,
		},
		"timestamps without time zone, in the one that the configuration names": {
			statements: []string{`create table sessions (id uuid primary key, runtime text, status text, vm_name text, started_at timestamp, expires_at timestamp, finished_at timestamp)`,
				`set timezone = 'Asia/Seoul'`,
				fill("sessions", columns, "id::uuid, runtime, status, vm_name, started_at, expires_at"), grant},
			section: "database: {timeZone: Asia/Seoul}\n",
			status:  `select status from sessions where id = $1 and (finished_at is null or abs(extract(epoch from finished_at - (now() at time zone 'Asia/Seoul'))) < 600)`,
		},
		"other names, with quotes, spaces and upper case": {
			statements: []string{`create schema "Lab; drop"`, `create table "Lab; drop"."the ""sessions""" ("ID" uuid primary key, "run time" text, "Zustand" text, "select" text, "von" timestamptz, "bis" timestamptz, "Ende''" timestamptz)`,
				fill(`"Lab; drop"."the ""sessions"""`, `"ID", "run time", "Zustand", "select", "von", "bis"`, `id::uuid, case runtime when 'vm' then 'V M' end, case status when 'running' then 'läuft' end, vm_name, started_at, expires_at`),
				`grant usage on schema "Lab; drop" to reaper`, `grant select, update ("Zustand", "Ende''") on "Lab; drop"."the ""sessions""" to reaper`},
			section: `
database:
  schema: "Lab; drop"
  table: 'the "sessions"'
  columns: {id: ID, runtime: run time, status: Zustand, vmName: select, startedAt: von, expiresAt: bis, finishedAt: "Ende''"}
  statuses: {starting: "it's starting", running: läuft, expired: abgelaufen, failed: kaputt, ended: [fertig]}
  runtimes: {vm: V M, pod: P}
`,
			status: `select case "Zustand" when 'läuft' then 'running' when 'abgelaufen' then 'expired' when 'kaputt' then 'failed' end from "Lab; drop"."the ""sessions""" where "ID" = $1`,
		},
		"an updatable view": {
			statements: []string{`create table lessons (lesson uuid primary key, kind text, state text, machine text, began timestamptz, ends timestamptz, done timestamptz, secret text)`,
				fill("lessons", "lesson, kind, state, machine, began, ends", "id::uuid, runtime, status, vm_name, started_at, expires_at"),
				`create view sessions as select lesson as id, kind as runtime, state as status, machine as vm_name, began as started_at, ends as expires_at, done as finished_at from lessons`, grant},
			status: `select state from lessons where lesson = $1`,
		},
		"a search_path of the database": {
			statements: []string{`create schema lab`, `create table lab.sessions (id uuid primary key, runtime text, status text, vm_name text, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
				fill("lab.sessions", columns, "id::uuid, runtime, status, vm_name, started_at, expires_at"),
				`grant usage on schema lab to reaper`, `grant select, update (status, finished_at) on lab.sessions to reaper`,
				`do $$ begin execute format('alter database %I set search_path = lab', current_database()); end $$`},
			status: `select status from lab.sessions where id = $1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := database(t, c.statements...)
			expectContract(t, open(t, reaperURL(db), mapping(t, c.section)), func(id string) string { return value(t, db, c.status, id) })
		})
	}
}

// expectContract goes through all that a pass asks of the store.
func expectContract(t *testing.T, store *reap.PostgresStore, statusOf func(id string) string) {
	t.Helper()
	ctx := t.Context()
	rows := read(t, store)
	if rows.Fence != "prod" || rows.ReadOnly || len(rows.Sessions) != 3 {
		t.Fatalf("rows = %+v", rows)
	}
	due := map[string]bool{}
	for _, session := range rows.Sessions {
		due[session.ID] = session.PastEnd
		if age := rows.Now.Sub(*session.StartedAt); age < 25*time.Minute || age > 65*time.Minute {
			t.Errorf("session %s started %s ago by what was read", session.ID, age)
		}
	}
	if !due[first] || due[second] || due[third] {
		t.Errorf("past their end: %v, want the first alone", due)
	}
	for _, id := range []string{second, first} {
		want := map[string]bool{first: true}[id]
		left, err := store.Expire(ctx, id, nothing)
		if err != nil || (left == "") != want {
			t.Errorf("expiring %s: left %q, %v", id, left, err)
		}
	}
	if failed, err := store.Fail(ctx, third, "lab-other", time.Minute); err != nil || failed {
		t.Errorf("failing it under another machine's name: %t, %v", failed, err)
	}
	if failed, err := store.Fail(ctx, third, "lab-a2000000", time.Hour); err != nil || failed {
		t.Errorf("failing it within the grace: %t, %v", failed, err)
	}
	if failed, err := store.Fail(ctx, third, "lab-a2000000", time.Minute); err != nil || !failed {
		t.Errorf("failing it: %t, %v", failed, err)
	}
	for id, want := range map[string]string{first: "expired", second: "running", third: "failed"} {
		if got := statusOf(id); got != want {
			t.Errorf("session %s is %q, want %q", id, got, want)
		}
		live, err := store.Live(ctx, id)
		if err != nil || live != (want == "running") {
			t.Errorf("session %s is live: %t, %v", id, live, err)
		}
	}
	if live, err := store.Live(ctx, "no-such-id"); err != nil || live {
		t.Errorf("an id that is in no row is live: %t, %v", live, err)
	}
}

func TestTimesWithoutAZoneAreNotGuessedAt(t *testing.T) {
	for name, c := range map[string]struct{ columnType, mention string }{
		"timestamp": {"timestamp", "database.timeZone"},
		"date":      {"date", "is a date"},
	} {
		t.Run(name, func(t *testing.T) {
			db := database(t, `create table sessions (id uuid, runtime text, status text, vm_name text, started_at timestamptz, expires_at `+c.columnType+`, finished_at timestamptz)`,
				`insert into sessions values ('`+first+`', 'vm', 'running', 'lab-a', now(), now())`, grant)
			_, err := plain(t, db).Read(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.mention) {
				t.Errorf("reading: %v, want %q in it", err, c.mention)
			}
		})
	}
}

func TestTwoRowsOfOneIDAreNotReadAsOneSession(t *testing.T) {
	db := database(t, `create table sessions (id uuid, runtime text, status text, vm_name text, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
		`insert into sessions select '`+first+`', 'vm', 'running', 'lab-a', now() - interval '2 hours', now() + interval '1 hour' * n from generate_series(-1, 1, 2) as n`, grant)
	if _, err := plain(t, db).Read(t.Context()); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("reading: %v, want an error that names the id", err)
	}
}

// TestOddRowsNeverShrinkTheLiveSessions reads rows as no backend should write them, in a database and on a machine whose time
// zones are others than UTC.
func TestOddRowsNeverShrinkTheLiveSessions(t *testing.T) {
	t.Setenv("TZ", "America/St_Johns")
	t.Setenv("PGTZ", "Pacific/Auckland")
	db := database(t, backendsTable()...)
	execute(t, db, `alter database `+db+` set timezone = 'Asia/Kolkata'`)
	cases := []struct {
		what, values string
		pastEnd, end bool
		over         bool
	}{
		{what: "an end a minute ago", values: `'running', 'lab-a', now() - interval '61 min', now() - interval '1 min'`, pastEnd: true, end: true},
		{what: "an end in a minute", values: `'running', 'lab-a', now() - interval '59 min', now() + interval '1 min'`, end: true},
		{what: "no name", values: `'running', null, now(), now() + interval '1 hour'`, end: true},
		{what: "no end", values: `'running', 'lab-a', now(), null`},
		{what: "no times at all", values: `'starting', null, null::timestamptz, null::timestamptz`},
		{what: "never ends", values: `'running', 'lab-a', now(), 'infinity'`},
		{what: "always has ended", values: `'running', 'lab-a', now(), '-infinity'`, pastEnd: true},
		{what: "ended before Christ", values: `'running', 'lab-a', null, '0044-03-15 BC'`, pastEnd: true},
		{what: "ends in a far year", values: `'running', 'lab-a', now(), '12026-01-01'`},
		{what: "an unknown word", values: `'paused', 'lab-a', now() - interval '2 hours', now() - interval '1 hour'`, pastEnd: true, end: true},
		{what: "a known word in capitals", values: `'FINISHED', 'lab-a', now() - interval '2 hours', now() - interval '1 hour'`, pastEnd: true, end: true},
		{what: "a known word with a space", values: `'finished ', 'lab-a', now() - interval '2 hours', now() - interval '1 hour'`, pastEnd: true, end: true},
		{what: "finished", values: `'finished', 'lab-a', now() - interval '2 hours', now() - interval '1 hour'`, over: true},
		{what: "expired", values: `'expired', 'lab-a', now() - interval '2 hours', now() - interval '1 hour'`, over: true},
		{what: "failed", values: `'failed', 'lab-a', null, null`, over: true},
	}
	for i, c := range cases {
		execute(t, db, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
			select format('a0000000-0000-4000-8000-%s', lpad('`+string(rune('a'+i%6))+`', 12, '`+string(rune('0'+i/6))+`'))::uuid, '`+c.what+`', 'x', 'vm', `+c.values)
	}
	store := plain(t, db)
	rows := read(t, store)
	byID := map[string]reap.Session{}
	for _, session := range rows.Sessions {
		byID[session.ID] = session
	}
	for _, c := range cases {
		id := value(t, db, `select id::text from sessions where user_id = $1`, c.what)
		session, found := byID[id]
		if found == c.over {
			t.Errorf("%s: among the live sessions: %t", c.what, found)
			continue
		}
		if live, err := store.Live(t.Context(), id); err != nil || live == c.over {
			t.Errorf("%s: live: %t, %v", c.what, live, err)
		}
		if found && (session.PastEnd != c.pastEnd || (session.ExpiresAt != nil) != c.end) {
			t.Errorf("%s: %+v", c.what, session)
		}
	}
	ended := slices.IndexFunc(rows.Sessions, func(s reap.Session) bool { return s.PastEnd && s.ExpiresAt != nil && s.StartedAt != nil })
	if age := rows.Now.Sub(*rows.Sessions[ended].ExpiresAt); age < time.Minute || age > 70*time.Minute {
		t.Errorf("a session that has just ended, ended %s ago", age)
	}
}

func TestARowWithoutAnIDStopsTheReading(t *testing.T) {
	db := database(t, `create table sessions (id uuid, runtime text, status text, vm_name text, started_at timestamptz, expires_at timestamptz, finished_at timestamptz)`,
		`insert into sessions (status) values ('running')`, grant)
	if _, err := plain(t, db).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "no id") {
		t.Errorf("reading: %v", err)
	}
}
