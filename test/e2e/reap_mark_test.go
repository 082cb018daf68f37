package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubevirtv1 "kubevirt.io/api/core/v1"

	vmlab "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

const testFinalizer = "lab.test/stay"

// holdBack keeps a virtual machine terminating, as KubeVirt's finalizer does while a node does not answer. It lets go when the
// test ends.
func holdBack(t *testing.T, name string) {
	t.Helper()
	setFinalizers(t, name, testFinalizer)
	t.Cleanup(func() { setFinalizers(t, name) })
}

// reaped reads the annotation that says why a machine goes.
func reaped(t *testing.T, machine *kubevirtv1.VirtualMachine) vmlab.Reaped {
	t.Helper()
	mark, err := vmlab.ParseReaped(machine.Annotations[vmlab.ReapedAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

func TestAMachineSaysWhyItGoesAndIsAskedToOnce(t *testing.T) {
	clean(t)
	session := sessionID('e', 1)
	name := backend.Lesson{Session: session}.VMName()
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	holdBack(t, name)
	before := machine(t, name)
	began := time.Now().Add(-time.Second)

	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	expectStatus(t, "prod", session, "expired")
	going := machine(t, name)
	mark := reaped(t, going)
	if mark.Reason != "expired" || mark.Since.After(began) || mark.Since.Before(began.Add(-2*time.Minute)) {
		t.Errorf("mark = %+v, want the reason expired since a minute ago", mark)
	}
	if mark.DeletionAskedAt.Before(began) || going.DeletionTimestamp.Sub(mark.DeletionAskedAt) < -time.Second {
		t.Errorf("the deletion was asked for at %s by the mark, and at %s by the API server", mark.DeletionAskedAt, going.DeletionTimestamp)
	}
	if diff := cmp.Diff(before.Spec, going.Spec); diff != "" {
		t.Errorf("the mark changed more than itself (-before +after):\n%s", diff)
	}

	// Hours later it is still there: its row is over, and nothing asks again. The clock is the machine's alone.
	p := pass(t, "prod")
	p.Clock = later{Duration: 3 * time.Hour}
	p.Settings.Released = []reap.BrakeName{reap.ClockBrake}
	other := sessionID('e', 2)
	open(t, "prod", other)
	insert(t, "prod", expired(other))
	report := p.Run(t.Context())
	if item := result(t, report); item.Session != other || item.Result != reap.Done {
		t.Errorf("item = %+v, want the other session alone, done", item)
	}
	if len(report.Notices) != 1 || !strings.Contains(report.Notices[0].Reason, "terminating for 3h0m") {
		t.Errorf("notices = %+v, want the age of what is stuck", report.Notices)
	}
	if after := machine(t, name); after.ResourceVersion != going.ResourceVersion {
		t.Errorf("the machine was touched again: %s", after.Annotations)
	}
}

// later is the machine's clock, put forward.
type later struct{ time.Duration }

func (l later) Now() time.Time                  { return time.Now().Add(l.Duration) }
func (l later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

func TestAMarkIsWrittenOnceForOneReasonAndAgainForAnother(t *testing.T) {
	clean(t)
	session := sessionID('e', 11)
	name := backend.Lesson{Session: session}.VMName()
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	refuseDeletes(t, name)
	marks := make([]vmlab.Reaped, 3)
	for i := range marks {
		if i == 2 {
			// Meanwhile the session was extended, and has ended again.
			execute(t, "prod", `update sessions set expires_at = now() - interval '1 second' where id = $1`, session)
		}
		_, run := reapjob(t, "prod", "run")
		expectExit(t, run, reap.ExitItemsFailed)
		marks[i] = reaped(t, machine(t, name))
	}
	if marks[0] != marks[1] {
		t.Errorf("the second pass marked it again: %+v, then %+v", marks[0], marks[1])
	}
	if !marks[2].Since.After(marks[0].Since) || !marks[2].DeletionAskedAt.After(marks[0].DeletionAskedAt) {
		t.Errorf("the mark of the first end stayed: %+v", marks[2])
	}
}

func TestWithoutTheWebhookMachinesGoUnmarked(t *testing.T) {
	clean(t)
	session := sessionID('e', 21)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	expectStatus(t, "prod", session, "expired")
	expectLeft(t)
	if !strings.Contains(run.Stderr, "could not be annotated") {
		t.Errorf("the log does not say that the machine was not marked:\n%s", run.Stderr)
	}
}

// slowMark answers the annotation never.
type slowMark struct{ reap.ClusterAccess }

func (s slowMark) Annotate(ctx context.Context, _ reap.Object, _, _ string) error {
	<-ctx.Done()
	return errors.Join(errors.New("annotating"), ctx.Err())
}

func TestAMarkThatHangsKeepsNoMachine(t *testing.T) {
	clean(t)
	session := sessionID('e', 31)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	p := pass(t, "prod")
	p.Cluster = slowMark{ClusterAccess: p.Cluster}
	if item := result(t, p.Run(t.Context())); item.Result != reap.Done {
		t.Errorf("item = %s (%s), want Done", item.Result, item.Detail)
	}
	expectLeft(t)
}
