package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

const (
	seedVariable = "VMWARDEN_TEST_SEED"
	historySteps = 150
)

// history is a made-up life of two environments: sessions come, are extended, finish, expire, lose their machines, and passes run,
// meet errors and die in between. What the backend does happens also in the middle of a pass.
type history struct {
	t      *testing.T
	random *rand.Rand
	// known are the sessions that were opened, by environment.
	known map[string][]string
	next  int
	// owner is an open connection of each environment's database, for the backend's part, which waits for no lock: the pass that
	// holds it is stopped in the middle.
	owners map[string]*pgx.Conn
	passes map[string]*reap.Pass
	log    []string
}

func TestNoHistoryCostsALiveSessionItsMachineOrLeaksForLong(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv(seedVariable); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d; to run it again, set %s", seed, seedVariable)
	clean(t)
	recording := record(t)
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 0)), known: map[string][]string{}, owners: map[string]*pgx.Conn{}, passes: map[string]*reap.Pass{}}
	for _, environment := range lab.Environments {
		connection, err := pgx.Connect(t.Context(), shared.Postgres.URL(environment))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close(contextAfter(t)) })
		if _, err := connection.Exec(t.Context(), `set lock_timeout = '20ms'`); err != nil {
			t.Fatal(err)
		}
		h.owners[environment] = connection
		h.passes[environment] = pass(t, environment)
	}
	for range historySteps {
		if h.random.IntN(4) == 0 {
			h.troubledPass(h.environment())
		} else {
			h.live()
		}
		if t.Failed() {
			break
		}
	}
	// The faults have stopped: two passes each, and all is well.
	for _, environment := range lab.Environments {
		for range 2 {
			if report := h.pass(environment, 0).Run(t.Context()); report.ExitStatus() != reap.ExitClean {
				t.Errorf("a pass without faults in %s ends with status %d: %+v", environment, report.ExitStatus(), report)
			}
		}
	}
	h.expectAgreement()
	expectInvariants(t, recording)
	if t.Failed() {
		for _, line := range h.log {
			t.Log(line)
		}
	}
}

func (h *history) environment() string { return lab.Environments[h.random.IntN(len(lab.Environments))] }

func (h *history) note(text string, arguments ...any) {
	h.log = append(h.log, fmt.Sprintf(text, arguments...))
}

// live does one thing that the backend, a student or a node does.
func (h *history) live() {
	environment := h.environment()
	if len(h.known[environment]) == 0 || h.random.IntN(3) == 0 {
		h.open(environment)
		return
	}
	// The old ones are over, and nothing more can happen to them.
	recent := h.known[environment][max(0, len(h.known[environment])-6):]
	session := recent[h.random.IntN(len(recent))]
	switch h.random.IntN(5) {
	case 0:
		h.note("%s %s is extended", environment, session)
		h.write(environment, `update sessions set expires_at = now() + interval '60 min' where id = $1 and status in ('starting', 'running')`, session)
	case 1, 2:
		h.note("%s %s comes to its end", environment, session)
		h.write(environment, `update sessions set expires_at = now() - interval '1 second' where id = $1`, session)
	case 3:
		h.note("%s %s is finished, and the backend forgets its objects", environment, session)
		h.write(environment, `update sessions set status = 'finished', finished_at = now() where id = $1 and status = 'running'`, session)
	case 4:
		h.note("%s %s loses its machine", environment, session)
		err := shared.AdminBackend.Machines(lab.VMNamespace).Delete(h.t.Context(), backend.Lesson{Session: session}.VMName(), metav1.DeleteOptions{})
		if err := ignoreNotFound(err); err != nil {
			h.t.Fatal(err)
		}
	}
}

// open begins a session as the backend does: the row first, then the Secret, then the machine. Now and then the backend dies on the
// way, and the row is rolled back without the rest.
func (h *history) open(environment string) {
	h.next++
	session := sessionID('H', h.next)
	h.known[environment] = append(h.known[environment], session)
	h.note("%s %s is opened", environment, session)
	h.write(environment, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
		values ($1::uuid, $1::uuid::text, 'x', 'vm', 'running', 'lab-' || left($1::uuid::text, 8), now() - interval '30 min', now() + interval '30 min')`, session)
	lesson := backend.Lesson{Session: session, Environment: environment}
	_, err := shared.Backends[environment].Create(h.t.Context(), backend.CloudInitSecret, lesson)
	if err == nil && h.random.IntN(4) > 0 {
		_, err = shared.Backends[environment].Create(h.t.Context(), backend.VMContainerDisk, lesson)
	}
	if err != nil || h.random.IntN(6) == 0 {
		// Also where the cap refused the machine: then only the Secret is left.
		h.note("%s %s is rolled back (%v)", environment, session, err)
		h.write(environment, `delete from sessions where id = $1`, session)
	}
}

// write is the backend's own write. One that meets the lock of a pass is not done.
func (h *history) write(environment, statement string, arguments ...any) {
	_, err := h.owners[environment].Exec(h.t.Context(), statement, arguments...)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "55P03" {
		h.note("… but its row is locked")
		return
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// troubledPass runs a pass with errors, in the middle of which life goes on and which may die at any step.
func (h *history) troubledPass(environment string) {
	h.note("a pass of %s", environment)
	report := h.pass(environment, 8).Run(h.t.Context())
	for _, item := range report.Items {
		h.note("  %s %s %s: %s", item.Direction, item.Session, item.Result, item.Detail)
	}
}

func (h *history) pass(environment string, faultOneIn int) *reap.Pass {
	p := *h.passes[environment]
	p.Settings = killSettings(p.Settings)
	trouble := &trouble{history: h, environment: environment, oneIn: faultOneIn}
	p.Cluster = troubledCluster{ClusterAccess: p.Cluster, trouble: trouble}
	p.Store = troubledStore{SessionStore: p.Store, trouble: trouble}
	return &p
}

// expectAgreement checks that cluster and tables agree: a machine for every live session that has not lost it, and nothing else.
func (h *history) expectAgreement() {
	var living []string
	for _, environment := range lab.Environments {
		query(h.t, environment, func(ctx context.Context, connection *pgx.Conn) error {
			rows, err := connection.Query(ctx, `select id::text, expires_at <= now() from sessions where status in ('starting', 'running')`)
			if err != nil {
				return err
			}
			var id string
			var ended bool
			_, err = pgx.ForEachRow(rows, []any{&id, &ended}, func() error {
				if ended {
					h.t.Errorf("session %s of %s is past its end and still live", id, environment)
				}
				living = append(living, id)
				return nil
			})
			return err
		})
	}
	slices.Sort(living)
	expectLeft(h.t, living...)
}

// errTrouble is every fault's.
var errTrouble = errors.New("trouble by order of the test")

// trouble befalls the calls of one pass.
type trouble struct {
	*history
	environment string
	oneIn       int
	dead        bool
}

// before lets life go on and says whether the call fails before it is made; a pass that died makes none any more.
func (r *trouble) before() error {
	if r.oneIn == 0 {
		return nil
	}
	if r.dead {
		return errTrouble
	}
	switch r.random.IntN(6) {
	case 0, 1:
		r.live()
	case 2, 3:
		// The student whose time is up presses the button at the last moment.
		r.note("  … the next of %s that has ended is extended", r.environment)
		r.write(r.environment, `update sessions set expires_at = now() + interval '60 min' where id = (select id from sessions
			where expires_at <= now() and status = 'running' order by expires_at limit 1 for update skip locked)`)
	}
	r.dead = r.random.IntN(6*r.oneIn) == 0
	if r.dead || r.random.IntN(r.oneIn) == 0 {
		return errTrouble
	}
	return nil
}

// after says whether the answer to a call that was made is lost.
func (r *trouble) after() error {
	if r.oneIn > 0 && r.random.IntN(r.oneIn) == 0 {
		return errTrouble
	}
	return nil
}

type troubledCluster struct {
	reap.ClusterAccess
	*trouble
}

func (c troubledCluster) Get(ctx context.Context, kind reap.Kind, namespace, name string) (reap.Object, error) {
	if err := c.before(); err != nil {
		return reap.Object{}, err
	}
	return c.ClusterAccess.Get(ctx, kind, namespace, name)
}

func (c troubledCluster) Annotate(ctx context.Context, object reap.Object, key, value string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.ClusterAccess.Annotate(ctx, object, key, value)
}

// Delete is where the invariant is looked at: whatever happened until this very moment, the session is not live.
func (c troubledCluster) Delete(ctx context.Context, object reap.Object) error {
	if err := c.before(); err != nil {
		return err
	}
	c.expectDeletable(object)
	if err := c.ClusterAccess.Delete(ctx, object); err != nil {
		return err
	}
	return c.after()
}

func (c troubledCluster) expectDeletable(object reap.Object) {
	if object.Environment != c.environment {
		c.t.Errorf("a pass of %s deletes %s of %q", c.environment, object, object.Environment)
	}
	for _, environment := range lab.Environments {
		var live bool
		err := c.owners[environment].QueryRow(c.t.Context(), `select exists (select from sessions where id = $1
			and status in ('starting', 'running') and (expires_at > now() or expires_at is null))`, object.Session).Scan(&live)
		if err != nil {
			c.t.Fatal(err)
		}
		if live {
			c.t.Errorf("a pass of %s deletes %s, whose session %s is live in %s", c.environment, object, object.Session, environment)
		}
	}
}

type troubledStore struct {
	reap.SessionStore
	*trouble
}

func (s troubledStore) Read(ctx context.Context) (reap.Rows, error) {
	if err := s.before(); err != nil {
		return reap.Rows{}, err
	}
	return s.SessionStore.Read(ctx)
}

func (s troubledStore) Expire(ctx context.Context, id string, work reap.LockedWork) (string, error) {
	if err := s.before(); err != nil {
		return "", err
	}
	return s.SessionStore.Expire(ctx, id, func(ctx context.Context, stillLocked func(context.Context) error) (string, error) {
		left, err := work(ctx, stillLocked)
		if err == nil {
			err = s.before()
		}
		return left, err
	})
}

func (s troubledStore) Live(ctx context.Context, id string) (bool, error) {
	if err := s.before(); err != nil {
		return false, err
	}
	return s.SessionStore.Live(ctx, id)
}

func (s troubledStore) Fail(ctx context.Context, id, vmName string, grace time.Duration) (bool, error) {
	if err := s.before(); err != nil {
		return false, err
	}
	return s.SessionStore.Fail(ctx, id, vmName, grace)
}
