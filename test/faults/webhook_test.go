package faults

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// noSpace is a file on a disk that is full.
const noSpace = "/dev/full"

//go:embed clocks/stopped.go.txt
var stoppedClock string

//go:embed clocks/ahead.go.txt
var clockAhead string

// runReplicas replaces the replicas, and gives what brings the usual ones back.
func runReplicas(t *testing.T, change func(number int, spec *lab.ReplicaSpec)) func() {
	t.Helper()
	specs := make([]lab.ReplicaSpec, replicas)
	for i := range specs {
		specs[i].Configuration = lab.Config
		change(i, &specs[i])
	}
	must(t, shared.Webhook.RunSpecs(t.Context(), specs...))
	return func() { must(t, shared.Webhook.Run(context.WithoutCancel(t.Context()), lab.Config, replicas)) }
}

func replicasAreKilled(t *testing.T, w *world) func() {
	w.during = func() error { return shared.Webhook.Kill(context.WithoutCancel(t.Context()), w.draw(replicas)) }
	return func() {}
}

func replicasAreDown(t *testing.T, _ *world) func() {
	must(t, shared.Webhook.Stop())
	return func() { must(t, shared.Webhook.Run(context.WithoutCancel(t.Context()), lab.Config, replicas)) }
}

// clocksAreWrong gives one replica a clock that stands still and another one that is ahead, and lets many creates come at once: those
// are what reservations, and so clocks, are for.
func clocksAreWrong(t *testing.T, w *world) func() {
	stopped, _, err := shared.BuildWithClock(t.Context(), "stopped", stoppedClock)
	must(t, err)
	ahead, _, err := shared.BuildWithClock(t.Context(), "ahead", clockAhead)
	must(t, err)
	w.during = func() error {
		w.rush(context.WithoutCancel(t.Context()))
		return nil
	}
	return runReplicas(t, func(number int, spec *lab.ReplicaSpec) { spec.Binary = []string{stopped, ahead, ""}[number] })
}

// noDeadlineDoubted is what has to be where the replicas agree about the time: none takes another's stamp for one that is too late.
func noDeadlineDoubted(t *testing.T, counts map[string]int, _ map[int]int) {
	t.Helper()
	if n := counts["DeadlineTooLate"]; n > 0 {
		t.Errorf("%d creates were denied since their deadline, which another replica had stamped, was too late", n)
	}
}

func reapersClocksAreAhead(t *testing.T, w *world) func() {
	_, binary, err := shared.BuildWithClock(t.Context(), "ahead", clockAhead)
	must(t, err)
	for _, r := range w.reapers {
		r.command.Path = binary
	}
	return func() {}
}

func aReplicaIsCutOff(_ *testing.T, _ *world) func() {
	shared.Webhook.Replicas()[0].Link.Pause()
	return shared.Webhook.Replicas()[0].Link.Resume
}

func theReplicasAreCutOff(_ *testing.T, _ *world) func() {
	shared.Webhook.PauseLinks()
	return shared.Webhook.ResumeLinks
}

// awaitCreates waits until a create is answered by us, or fails, as wanted.
func awaitCreates(t *testing.T, what string, answered bool) {
	t.Helper()
	await(t, what, func(ctx context.Context) error {
		// Over a connection that stands already nobody looks at a certificate.
		shared.Webhook.Disconnect()
		err := shared.Webhook.Answers(ctx)
		switch {
		case (err == nil) == answered:
			return nil
		case err == nil:
			return errors.New("it answers")
		}
		return err
	})
}

func theCertificateEnds(t *testing.T, _ *world) func() {
	must(t, shared.ControlPlane.ExpiredServingCertificate(shared.Webhook.CertificateDirectory(), "127.0.0.1"))
	awaitCreates(t, "the API server refuses the certificate", false)
	return func() {
		must(t, shared.ControlPlane.ServingCertificate(shared.Webhook.CertificateDirectory(), "127.0.0.1"))
		awaitCreates(t, "the API server believes the certificate again", true)
	}
}

func theCertificateIsReplaced(t *testing.T, w *world) func() {
	w.during = func() error {
		shared.Webhook.Disconnect()
		return shared.ControlPlane.ServingCertificate(shared.Webhook.CertificateDirectory(), "127.0.0.1")
	}
	return func() { awaitCreates(t, "the API server believes the certificate", true) }
}

func theCABundleIsBlanked(t *testing.T, _ *world) func() {
	must(t, shared.Webhook.SetCABundle(t.Context(), nil))
	awaitCreates(t, "the API server believes nobody", false)
	return func() {
		must(t, shared.Webhook.SetCABundle(context.WithoutCancel(t.Context()), shared.ControlPlane.CA()))
		awaitCreates(t, "the API server believes the certificate again", true)
	}
}

func theDiskIsFull(t *testing.T, w *world) func() {
	full, err := os.OpenFile(noSpace, os.O_WRONLY, 0)
	must(t, err)
	for _, r := range w.reapers {
		r.output = full
	}
	restore := runReplicas(t, func(_ int, spec *lab.ReplicaSpec) { spec.LogFile = noSpace })
	return func() {
		restore()
		must(t, full.Close())
	}
}

func passesAreKilled(_ *testing.T, w *world) func() {
	for _, r := range w.reapers {
		// A whole pass takes about that long.
		r.cutShort = func() time.Duration { return time.Duration(20+w.draw(400)) * time.Millisecond }
	}
	return func() {}
}

// theBackendReapsToo runs the backend's own reaper beside: by name, without locks, preconditions or a second look.
func theBackendReapsToo(t *testing.T, w *world) func() {
	w.during = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patienceOfBackend)
		defer cancel()
		for _, environment := range lab.Environments {
			ended, err := w.ended(ctx, environment)
			if err != nil {
				continue // it tries again in a minute
			}
			for _, session := range ended {
				name := backend.Lesson{Session: session}.VMName()
				_ = shared.Backends[environment].Machines(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{})
				_ = w.write(ctx, environment, `update sessions set status = 'expired', finished_at = now() where id = $1 and status in ('starting', 'running') and expires_at <= now()`, session)
			}
		}
		return nil
	}
	return func() {}
}
