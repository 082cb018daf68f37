package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// Insert writes a running session's row, which began half an hour ago and ends after the given time, which may have passed.
func (s *Stack) Insert(t testing.TB, lesson backend.Lesson, ends time.Duration) {
	t.Helper()
	s.query(t, lesson, `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
		values ($1::uuid, $1::uuid::text, 'systemd-1', 'vm', 'running', $2, now() - interval '30 minutes', now() + make_interval(secs => $3))
		returning status`, lesson.Session, lesson.VMName(), ends.Seconds())
}

// Expire lets a session's end pass now.
func (s *Stack) Expire(t testing.TB, lesson backend.Lesson) {
	t.Helper()
	s.query(t, lesson, `update sessions set expires_at = now() where id = $1 returning status`, lesson.Session)
}

// StatusOf is what a session's row says.
func (s *Stack) StatusOf(t testing.TB, lesson backend.Lesson) string {
	t.Helper()
	return s.query(t, lesson, `select status from sessions where id = $1`, lesson.Session)
}

func (s *Stack) query(t testing.TB, lesson backend.Lesson, statement string, arguments ...any) (answer string) {
	t.Helper()
	ctx := After(t)
	err := s.WithDatabase(ctx, lesson.Environment, func(connection *pgx.Conn) error {
		return connection.QueryRow(ctx, statement, arguments...).Scan(&answer)
	})
	if err != nil {
		t.Fatalf("%s: %v", strings.Fields(statement)[0], err)
	}
	return answer
}

// Pass lets one pass of the environment's reaper run, as its real account, and fails the test unless it ends with this status.
func (s *Stack) Pass(t testing.TB, environment string, want int) lab.Run {
	t.Helper()
	run, err := s.Reapjob(t.Context(), environment, lab.Config, "run")
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != want {
		t.Errorf("the pass ended with %d, want %d:\n%s%s", run.Status, want, run.Stdout, run.Stderr)
	}
	return run
}

// AwaitNothingLeft waits until no lab object of any session is in the VM namespace.
func (s *Stack) AwaitNothingLeft(t testing.TB) {
	t.Helper()
	s.awaitNothing(t, sessionLabel)
}

// AwaitNothingLeftOf waits until no lab object of this session is in the VM namespace.
func (s *Stack) AwaitNothingLeftOf(t testing.TB, lesson backend.Lesson) {
	t.Helper()
	s.awaitNothing(t, sessionLabel+"="+lesson.Session)
}

const sessionLabel = "ttlab.io/session"

func (s *Stack) awaitNothing(t testing.TB, selector string) {
	t.Helper()
	s.Await(t, "nothing is left", func(ctx context.Context) error {
		objects, err := s.labObjects(ctx, selector)
		if err == nil && len(objects) > 0 {
			err = fmt.Errorf("%d objects, such as %s %s", len(objects), objects[0].GetKind(), objects[0].GetName())
		}
		return err
	})
}

func (s *Stack) labObjects(ctx context.Context, selector string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, resource := range made {
		objects, err := s.Objects.Resource(resource).Namespace(lab.VMNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		all = append(all, objects.Items...)
	}
	return all, nil
}

// AwaitOrphanAge waits until all lab objects are so old that one without a live row is an orphan.
func (s *Stack) AwaitOrphanAge(t testing.TB) {
	t.Helper()
	parsed, err := config.Parse([]byte(lab.Config))
	if err != nil {
		t.Fatal(err)
	}
	// The API server dates to the second.
	age := parsed.Reaping.OrphanMinimumAge.Duration + time.Second
	s.Await(t, "the objects are old enough", func(ctx context.Context) error {
		objects, err := s.labObjects(ctx, sessionLabel)
		for _, object := range objects {
			if time.Since(object.GetCreationTimestamp().Time) <= age {
				return fmt.Errorf("%s is not", object.GetName())
			}
		}
		return err
	})
}

// Places is how many places `webhook caps` counts as used.
func (s *Stack) Places(t testing.TB) int {
	t.Helper()
	directory := t.TempDir()
	kubeconfig, configuration := filepath.Join(directory, "kubeconfig"), filepath.Join(directory, "config.yaml")
	if err := s.ControlPlane.WriteKubeconfig(kubeconfig, s.Admin); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(configuration, []byte(lab.Config), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := s.Binary(t.Context(), "webhook", "caps", "--config", configuration, "--kubeconfig", kubeconfig, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report policy.CapReport
	if err := json.Unmarshal([]byte(run.Stdout), &report); err != nil {
		t.Fatalf("reading what webhook caps prints: %v\n%s%s", err, run.Stdout, run.Stderr)
	}
	return report.VMs.Used
}
