package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// patienceOfBackend is how long a backend waits for one answer.
const patienceOfBackend = 3 * time.Second

// school is what goes on in two environments: sessions come, are extended, finish and come to their end. What fails is not tried again.
type school struct {
	databases map[string]*pgxpool.Pool

	mutex  sync.Mutex
	random *rand.Rand
	// known are the sessions that were opened, by environment.
	known map[string][]string
	seen  seen
}

// sessionsOpened numbers the sessions of all schools.
var sessionsOpened int

func newSchool(t *testing.T, seed uint64) *school {
	t.Helper()
	s := &school{databases: map[string]*pgxpool.Pool{}, known: map[string][]string{}, random: rand.New(rand.NewPCG(seed, 0)), seen: newSeen()}
	for _, environment := range lab.Environments {
		pool, err := pgxpool.New(t.Context(), shared.Postgres.URL(environment))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		s.databases[environment] = pool
	}
	return s
}

// teach does steps of the school's life until there are no more, or the context ends.
func (s *school) teach(ctx context.Context, steps int) {
	for range steps {
		if ctx.Err() != nil {
			return
		}
		s.step(ctx)
	}
}

// draw is a random number below n.
func (s *school) draw(n int) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.random.IntN(n)
}

func (s *school) step(ctx context.Context) {
	environment := lab.Environments[s.draw(len(lab.Environments))]
	session, found := s.recent(environment)
	if !found || s.draw(3) == 0 {
		s.open(ctx, environment)
		return
	}
	switch s.draw(5) {
	case 0:
		_ = s.write(ctx, environment, `update sessions set expires_at = now() + interval '60 min' where id = $1 and status in ('starting', 'running')`, session)
	case 1, 2:
		_ = s.write(ctx, environment, `update sessions set expires_at = now() - interval '1 second' where id = $1`, session)
	case 3:
		_ = s.write(ctx, environment, `update sessions set status = 'finished', finished_at = now() where id = $1 and status = 'running'`, session)
	case 4:
		s.lose(ctx, environment, session)
	}
}

// recent is one of the sessions that were opened last: with older ones nothing can happen any more.
func (s *school) recent(environment string) (session string, found bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known := s.known[environment]
	if len(known) == 0 {
		return "", false
	}
	known = known[max(0, len(known)-6):]
	return known[s.random.IntN(len(known))], true
}

// open begins a session as the backend does: the row first, then the Secret, then the machine; what fails is rolled back as far as it
// can be.
func (s *school) open(ctx context.Context, environment string) {
	session := s.newSession(environment)
	err := s.write(ctx, environment, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
		values ($1::uuid, $1::uuid::text, 'x', 'vm', 'running', 'lab-' || left($1::uuid::text, 8), now() - interval '30 min', now() + interval '30 min')`, session)
	if err != nil {
		// Whether it was written nobody knows: the backend forgets it.
		return
	}
	lesson := backend.Lesson{Session: session, Environment: environment}
	if err = s.create(ctx, environment, backend.CloudInitSecret, lesson); err == nil {
		err = s.create(ctx, environment, backend.VMContainerDisk, lesson)
	}
	s.seen.create(err)
	if err != nil {
		_ = s.write(ctx, environment, `delete from sessions where id = $1`, session)
	}
}

// rush creates many machines at once, for sessions that are in no table: what is admitted is an orphan.
func (s *school) rush(ctx context.Context) {
	var all sync.WaitGroup
	for i := range 16 {
		environment := lab.Environments[i%len(lab.Environments)]
		lesson := backend.Lesson{Session: s.newSession(environment), Environment: environment}
		all.Go(func() { s.seen.create(s.create(ctx, environment, backend.VMContainerDisk, lesson)) })
	}
	all.Wait()
}

func (s *school) newSession(environment string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	sessionsOpened++
	session := fmt.Sprintf("%08x-0000-4000-8000-%012d", 0xfa000000+sessionsOpened, sessionsOpened)
	s.known[environment] = append(s.known[environment], session)
	return session
}

func (s *school) create(ctx context.Context, environment, file string, lesson backend.Lesson) error {
	ctx, cancel := context.WithTimeout(ctx, patienceOfBackend)
	defer cancel()
	_, err := shared.Backends[environment].Create(ctx, file, lesson)
	return err
}

// lose deletes a session's machine, as its own backend may at any time.
func (s *school) lose(ctx context.Context, environment, session string) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfBackend)
	defer cancel()
	err := shared.Backends[environment].Machines(lab.VMNamespace).Delete(ctx, backend.Lesson{Session: session}.VMName(), metav1.DeleteOptions{})
	s.seen.delete(err)
}

// ended are the live sessions of an environment whose end has passed.
func (s *school) ended(ctx context.Context, environment string) ([]string, error) {
	rows, err := s.databases[environment].Query(ctx, `select id::text from sessions where status in ('starting', 'running') and expires_at <= now()`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// write is a backend's own write. One that meets the lock of a pass is not done.
func (s *school) write(ctx context.Context, environment, statement string, arguments ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patienceOfBackend)
	defer cancel()
	return pgx.BeginFunc(ctx, s.databases[environment], func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement, arguments...)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "55P03" {
			return fmt.Errorf("the row is locked: %w", err)
		}
		return err
	})
}

// seen is what the backends met.
type seen struct {
	mutex sync.Mutex
	// counts are of creates admitted, denied by us with these codes, and failed otherwise; and of deletes in the own environment that
	// were accepted and that failed.
	counts map[string]int
	// passes are the exit statuses of passes, by how often each was.
	passes map[int]int
}

func newSeen() seen { return seen{counts: map[string]int{}, passes: map[int]int{}} }

func (s *seen) create(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	codes := backend.DenialCodes(err)
	switch {
	case err == nil:
		s.counts["admitted"]++
	case len(codes) > 0 && codes[0] != "":
		s.counts[codes[0]]++
	default:
		s.counts["failed"]++
	}
}

func (s *seen) delete(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err == nil || apierrors.IsNotFound(err) {
		s.counts["deleted"]++
		return
	}
	s.counts["delete failed"]++
}

func (s *seen) pass(status int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.passes[status]++
}

// take gives what was seen, and forgets it.
func (s *seen) take() (counts map[string]int, passes map[int]int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	counts, passes = s.counts, s.passes
	s.counts, s.passes = map[string]int{}, map[int]int{}
	return counts, passes
}
