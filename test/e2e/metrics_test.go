package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/ttlab/vmwarden/internal/config"
	vmlab "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/observe"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

const (
	lastPass  = "vmwarden_reap_last_pass_timestamp_seconds"
	lastClean = "vmwarden_reap_last_clean_timestamp_seconds"
	lastExit  = "vmwarden_reap_last_pass_exit_status"
)

func TestAPassThatNeverRanShowsAndThenEveryPassDoes(t *testing.T) {
	clean(t)
	forget(t, "prod")
	forget(t, "dev")
	awaitMetric(t, 0, lastPass, "environment", "prod")
	before := awaitMetric(t, -1, lastExit, "environment", "dev")
	expectMetric(t, before, 0, lastClean, "environment", "dev")
	expectMetric(t, before, 1, leaderOnly, "environment", "dev")

	session := sessionID('m', 1)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	document, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	after := awaitMetric(t, 1, "vmwarden_reap_passes_total", "environment", "prod", "exit_status", "0")
	expectMetric(t, after, 0, lastExit, "environment", "prod")
	expectMetric(t, after, 1, "vmwarden_reap_items_total", "environment", "prod", "direction", "expired", "outcome", "done")
	expectMetric(t, after, 1, "vmwarden_reap_last_pass_items", "environment", "prod", "direction", "expired", "outcome", "done")
	for _, metric := range []string{lastPass, lastClean} {
		got := after.values(metric, labelled("environment", "prod"))
		if len(got) != 1 || math.Abs(got[0]-float64(document.StartedAt.UnixMilli())/1000) > .01 {
			t.Errorf("%s = %v, want the moment %s", metric, got, document.StartedAt)
		}
	}
	expectMetric(t, after, -1, lastExit, "environment", "dev")

	// The wrong database: the fence holds.
	_, run = reapjobWith(t, "dev", shared.ReaperURL("prod"), lab.Config, "run")
	expectExit(t, run, reap.ExitHeld)
	fenced := awaitMetric(t, reap.ExitHeld, lastExit, "environment", "dev")
	expectMetric(t, fenced, 1, "vmwarden_reap_last_pass_held", "environment", "dev", "direction", "orphan", "cause", "Fenced")
	expectMetric(t, fenced, 1, "vmwarden_reap_held_total", "environment", "dev", "direction", "orphan", "cause", "Fenced")
	expectMetric(t, fenced, 0, lastClean, "environment", "dev")
}

func TestAMissingOrBrokenStatusShows(t *testing.T) {
	forget(t, "dev")
	core := clients(t).CoreV1().ConfigMaps(lab.VMNamespace)
	const name = "vmwarden-status-dev"
	found, err := core.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Data = map[string]string{"status.json": "{"}
	if _, err := core.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitMetric(t, 0, leaderOnly, "environment", "dev")
	if err := core.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		found.Data, found.ResourceVersion, found.UID = nil, "", ""
		if _, err := core.Create(contextAfter(t), found, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	missing := awaitMetric(t, 1, leaderOnly, "environment", "dev")
	expectMetric(t, missing, 0, lastPass, "environment", "dev")
}

func TestAfterTheLeadersDeathAnotherReplicaAloneTells(t *testing.T) {
	clean(t)
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	var first int
	var before scraped
	await(t, "a leader", func(context.Context) (err error) {
		first, before, err = leader(t)
		return err
	})
	dead := shared.Webhook.Replicas()[first].MetricsAddress
	if err := shared.Webhook.Kill(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	// leader fails the test if two replicas tell.
	await(t, "another leader", func(context.Context) error {
		next, after, err := leader(t)
		if err != nil {
			return err
		}
		if shared.Webhook.Replicas()[next].MetricsAddress == dead {
			t.Fatal("the dead one still answers")
		}
		passes := after.values("vmwarden_reap_passes_total", labelled("environment", "prod", "exit_status", "0"))
		if want := before.values("vmwarden_reap_passes_total", labelled("environment", "prod", "exit_status", "0")); len(passes) != 1 || passes[0] < want[0] {
			return fmt.Errorf("passes are %v, and were %v", passes, want)
		}
		return nil
	})
}

// goneTimes are how many machines of prod went for the reason, and how long that took them altogether.
func goneTimes(exported scraped, metric, reason string) (count uint64, sum float64) {
	for _, series := range exported[metric].GetMetric() {
		of := map[string]string{}
		for _, pair := range series.GetLabel() {
			of[pair.GetName()] = pair.GetValue()
		}
		if of["environment"] == "prod" && of["reason"] == reason {
			return series.GetHistogram().GetSampleCount(), series.GetHistogram().GetSampleSum()
		}
	}
	return 0, 0
}

// TestItIsMeasuredHowLongAReapedMachineTakesToGo holds a machine back by a finalizer, and compares what the leader measured with
// what the API server's objects said before it went.
func TestItIsMeasuredHowLongAReapedMachineTakesToGo(t *testing.T) {
	clean(t)
	session := sessionID('m', 11)
	name := backend.Lesson{Session: session}.VMName()
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	setFinalizers(t, name, testFinalizer)
	var before scraped
	await(t, "a leader", func(context.Context) (err error) {
		_, before, err = leader(t)
		return err
	})
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	mark := reaped(t, machine(t, name))
	earliest := time.Now()
	setFinalizers(t, name)
	await(t, "the machine is gone", func(context.Context) error {
		if exists(t, name) {
			return errors.New("it is still there")
		}
		return nil
	})

	const whole, toAsked, toGone = "vmwarden_reaped_vm_expiry_to_gone_seconds", "vmwarden_reaped_vm_expiry_to_deletion_asked_seconds", "vmwarden_reaped_vm_deletion_asked_to_gone_seconds"
	countBefore, _ := goneTimes(before, whole, mark.Reason)
	var after scraped
	await(t, "the leader sees it gone", func(context.Context) (err error) {
		if _, after, err = leader(t); err != nil {
			return err
		}
		if count, _ := goneTimes(after, whole, mark.Reason); count != countBefore+1 {
			return fmt.Errorf("%d machines went, and %d before", count, countBefore)
		}
		return nil
	})
	latest := time.Now()
	for metric, bounds := range map[string]struct{ from, to time.Duration }{
		whole:   {earliest.Sub(mark.Since), latest.Sub(mark.Since)},
		toGone:  {earliest.Sub(mark.DeletionAskedAt), latest.Sub(mark.DeletionAskedAt)},
		toAsked: {mark.DeletionAskedAt.Sub(mark.Since) - time.Millisecond, mark.DeletionAskedAt.Sub(mark.Since) + time.Millisecond},
	} {
		_, sumBefore := goneTimes(before, metric, mark.Reason)
		count, sum := goneTimes(after, metric, mark.Reason)
		if took := sum - sumBefore; count != countBefore+1 || took < bounds.from.Seconds() || took > bounds.to.Seconds() {
			t.Errorf("%s grew by %d and %v s, want one and between %s and %s", metric, count-countBefore, took, bounds.from, bounds.to)
		}
	}
}

func TestAMachinePastItsDeadlineShows(t *testing.T) {
	clean(t)
	awaitMetric(t, 0, "vmwarden_vms_past_deadline", "environment", "prod")
	past := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('m', 21), Environment: "prod"})
	setNested(t, past, "2026-01-01T00:00:00Z", "metadata", "annotations", vmlab.DeadlineAnnotation)
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), past, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	exported := awaitMetric(t, 1, "vmwarden_vms_past_deadline", "environment", "prod")
	expectMetric(t, exported, 0, "vmwarden_vms_past_deadline", "environment", "dev")
	expectMetric(t, exported, 0, "vmwarden_vms_stuck_terminating", "environment", "prod")
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	awaitMetric(t, 0, "vmwarden_vms_past_deadline", "environment", "prod")
}

// TestAMachineStuckTerminatingShows runs what the leader runs in this process, with a clock put forward: nobody waits five minutes in a
// test. The API server, the machine and its deletion are real.
func TestAMachineStuckTerminatingShows(t *testing.T) {
	clean(t)
	session := sessionID('m', 31)
	name := backend.Lesson{Session: session}.VMName()
	open(t, "dev", session)
	holdBack(t, name)
	if err := shared.AdminBackend.Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	parsed, err := config.Parse([]byte(lab.Config))
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration]float64{0: 0, 6 * time.Minute: 1} {
		machines := observe.NewMachines(client, parsed.Contract(), later{Duration: ahead}, zaptest.NewLogger(t))
		registry := prometheus.NewRegistry()
		registry.MustRegister(machines)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- machines.Start(ctx) }()
		await(t, fmt.Sprintf("%s later %v machines are stuck", ahead, want), func(context.Context) error {
			families, err := registry.Gather()
			if err != nil {
				return err
			}
			for _, family := range families {
				if family.GetName() == "vmwarden_vms_stuck_terminating" {
					got := scraped{family.GetName(): family}.values(family.GetName(), labelled("environment", "dev"))
					if len(got) == 1 && got[0] == want {
						return nil
					}
					return fmt.Errorf("%v are", got)
				}
			}
			return errors.New("the first list is not in")
		})
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
