package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/internal/trace"
	"github.com/ttlab/vmwarden/test/backend"
	testlab "github.com/ttlab/vmwarden/test/lab"
)

// traced runs `webhook trace` on the lab's audit log and cluster, as an admin.
func traced(t *testing.T, arguments ...string) testlab.Run {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, shared.Admin); err != nil {
		t.Fatal(err)
	}
	config := write(t, "config.yaml", testlab.Config)
	run, err := shared.Binary(t.Context(), "webhook", append([]string{"trace", "--config", config, "--kubeconfig", kubeconfig}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// tracedReport is the same for programs.
func tracedReport(t *testing.T, arguments ...string) trace.Report {
	t.Helper()
	run := traced(t, append(arguments, "-o", "json")...)
	expectExit(t, run, cli.ExitOK)
	var report trace.Report
	if err := json.Unmarshal([]byte(run.Stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, run.Stdout)
	}
	// The last line may still be being written.
	if !report.Read.AuditLog || !report.Read.Cluster {
		t.Errorf("what was read: %+v", report.Read)
	}
	return report
}

// answerTo is a machine's answer to a question.
func answerTo(t *testing.T, m trace.Machine, question string) trace.Answer {
	t.Helper()
	for _, a := range m.Answers {
		if a.Question == question {
			return a
		}
	}
	t.Fatalf("%s is not answered in %+v", question, m)
	return trace.Answer{}
}

// lifeOf is the machine with this UID: the name may have had others, in an earlier run of the test.
func lifeOf(t *testing.T, report trace.Report, uid types.UID) trace.Machine {
	t.Helper()
	for _, m := range report.Machines {
		if m.UID == string(uid) {
			return m
		}
	}
	t.Fatalf("no machine has the UID %s: %+v", uid, report.Machines)
	return trace.Machine{}
}

// awaitGone is a report in which the audit log tells the machine's end: the API server may answer before it writes.
func awaitGone(t *testing.T, asked string, uid types.UID) (report trace.Report) {
	t.Helper()
	await(t, "the audit log tells the end", func(context.Context) error {
		report = tracedReport(t, asked, shared.ControlPlane.AuditLog())
		if a := answerTo(t, lifeOf(t, report, uid), trace.Gone); a.Source != trace.AuditLog {
			return fmt.Errorf("it is %+v", a)
		}
		return nil
	})
	return report
}

// expectAnswer compares an answer's source and looks for words in who and text.
func expectAnswer(t *testing.T, m trace.Machine, question string, source trace.Source, words ...string) trace.Answer {
	t.Helper()
	a := answerTo(t, m, question)
	if a.Source != source || a.Known != (source != "") {
		t.Errorf("%s is known from %q, want %q: %+v", question, a.Source, source, a)
	}
	expectMention(t, question, a.Who+": "+a.Text, words...)
	return a
}

func TestATraceTellsTheLifeOfAMachineFromItsDenialToItsEnd(t *testing.T) {
	clean(t)
	const (
		prodBackend = "system:serviceaccount:ttlab-prod:backend"
		prodReaper  = "system:serviceaccount:ttlab-prod:reaper"
	)
	// Whoever does not lead sees nothing go.
	await(t, "a leader", func(context.Context) error {
		_, _, err := leader(t)
		return err
	})
	session := sessionID('W', 1)
	name := backend.Lesson{Session: session}.VMName()

	// Denied, made, stamped, denied to a stranger, held by a finalizer.
	expectDenied(t, "dev makes prod's machine", func() error {
		_, err := shared.Backends["dev"].CreateObject(t.Context(), object(t, backend.VMContainerDisk, backend.Lesson{Session: session, Environment: "prod"}), metav1.CreateOptions{})
		return err
	}(), "EnvironmentMismatch")
	open(t, "prod", session)
	first := machine(t, name)
	expectDenied(t, "dev deletes it", shared.Backends["dev"].Machines(testlab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	t.Cleanup(func() { setFinalizers(t, name) })
	setFinalizers(t, name, "vmwarden.io/test")

	alive := tracedReport(t, name, shared.ControlPlane.AuditLog())
	expectAnswer(t, lifeOf(t, alive, first.UID), trace.Gone, trace.Cluster, "still there")
	expectAnswer(t, lifeOf(t, alive, first.UID), trace.Reaped, trace.Cluster, "not reaped")

	// Expired, reaped, and gone once its finalizer is.
	insert(t, "prod", expired(session))
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	mark, err := lab.ParseReaped(machine(t, name).Annotations[lab.ReapedAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, lifeOf(t, tracedReport(t, session, shared.ControlPlane.AuditLog()), first.UID), trace.Gone, trace.Cluster, "deleting", "vmwarden.io/test")
	setFinalizers(t, name)
	await(t, "the machine is gone", func(context.Context) error {
		if exists(t, name) {
			return fmt.Errorf("it is there")
		}
		return nil
	})

	report := awaitGone(t, session, first.UID)
	m := lifeOf(t, report, first.UID)
	if m.Session != session || m.Environment != "prod" || m.Name != name {
		t.Errorf("the machine is %+v", m)
	}
	expectAnswer(t, m, trace.Created, trace.AuditLog, prodBackend, "as a Backend", "of 8")
	expectAnswer(t, m, trace.Stamped, trace.AuditLog, "vmwarden.io/created-by="+prodBackend, "vmwarden.io/deadline="+first.Annotations[lab.DeadlineAnnotation])
	expectAnswer(t, m, trace.Denied, trace.AuditLog, "1 × EnvironmentMismatch before its creation", "1 × EnvironmentForeign afterwards")
	expectAnswer(t, m, trace.Changed, trace.AuditLog, "× by vmwarden-test-admin")
	expectAnswer(t, m, trace.Extended, "", "sessions table alone", "the session ended at "+mark.Since.UTC().Format("2006-01-02T15:04:05"))
	if due := expectAnswer(t, m, trace.Due, trace.AuditLog); due.Time == nil || lab.FormatDeadline(*due.Time) != first.Annotations[lab.DeadlineAnnotation] {
		t.Errorf("due at %v, want %s", due.Time, first.Annotations[lab.DeadlineAnnotation])
	}
	if reaped := expectAnswer(t, m, trace.Reaped, trace.AuditLog, "expired"); reaped.Time == nil || !reaped.Time.Equal(mark.Since) {
		t.Errorf("reaped since %v, want %s", reaped.Time, mark.Since)
	}
	asked := expectAnswer(t, m, trace.DeletionAsked, trace.AuditLog, prodReaper, "as a Reaper")
	gone := expectAnswer(t, m, trace.Gone, trace.AuditLog, "last finalizer")
	if asked.Time == nil || gone.Time == nil || !gone.Time.After(*asked.Time) {
		t.Errorf("asked for at %v, gone at %v", asked.Time, gone.Time)
	}
	expectStory(t, report, []string{
		"audit log virtualmachine/" + name + " denied",
		"audit log secret/" + name + "-cloudinit created",
		"audit log virtualmachine/" + name + " created",
		"audit log virtualmachine/" + name + " stamped",
		"audit log virtualmachine/" + name + " denied",
		"audit log virtualmachine/" + name + " changed",
		"audit log virtualmachine/" + name + " reaped",
		"audit log virtualmachine/" + name + " deletion asked",
		"audit log secret/" + name + "-cloudinit deletion asked",
		"audit log virtualmachine/" + name + " gone",
		"audit log virtualmachine/" + name + " due",
	})
	if !slices.ContainsFunc(report.Timeline, func(l trace.Line) bool {
		return l.Source == trace.EventList && strings.HasPrefix(l.Text, "Reaped: expired")
	}) {
		t.Error("the Event that tells why it was reaped is missing")
	}
	await(t, "the leader's log tells of it too", func(context.Context) error {
		report := tracedReport(t, slices.Concat([]string{name, shared.ControlPlane.AuditLog()}, ownLogs(t))...)
		if !slices.ContainsFunc(report.Timeline, func(l trace.Line) bool { return l.Source == trace.WebhookLog && l.What == trace.Gone }) {
			return fmt.Errorf("%d lines, none of them", len(report.Timeline))
		}
		return nil
	})

	// The name again: another life.
	execute(t, "prod", `delete from sessions`)
	open(t, "prod", session)
	again := tracedReport(t, name, shared.ControlPlane.AuditLog())
	second := machine(t, name).UID
	expectAnswer(t, lifeOf(t, again, first.UID), trace.Gone, trace.AuditLog, "last finalizer")
	expectAnswer(t, lifeOf(t, again, second), trace.Gone, trace.Cluster, "still there")
	expectAnswer(t, lifeOf(t, again, second), trace.Denied, trace.AuditLog, "nothing")
}

// expectStory checks that these lines are in the time line, in this order.
func expectStory(t *testing.T, report trace.Report, want []string) {
	t.Helper()
	next := 0
	for _, line := range report.Timeline {
		if next < len(want) && want[next] == fmt.Sprintf("%s %s %s", line.Source, line.Object, line.What) {
			next++
		}
	}
	if next < len(want) {
		var lines []string
		for _, line := range report.Timeline {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", line.Time.Format("15:04:05.000"), line.Source, line.Object, line.What, line.Text))
		}
		t.Errorf("%q does not follow in\n%s", want[next], strings.Join(lines, "\n"))
	}
}

func TestATraceOfASessionTellsOfAllItsMachinesAndOneOfAMachineOfThatAlone(t *testing.T) {
	clean(t)
	session := sessionID('W', 2)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	if err := createAs(t, "prod", session, withName(name+"b")); err != nil {
		t.Fatal(err)
	}
	names := func(report trace.Report) (list []string) {
		for _, m := range report.Machines {
			list = append(list, m.Name)
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	if got := names(tracedReport(t, session, shared.ControlPlane.AuditLog())); !slices.Equal(got, []string{name, name + "b"}) {
		t.Errorf("machines %v, want both", got)
	}
	if got := names(tracedReport(t, name+"b", shared.ControlPlane.AuditLog())); !slices.Equal(got, []string{name + "b"}) {
		t.Errorf("machines %v, want the one that was asked for", got)
	}
}

func TestATraceKnowsAMachineThatWentAtOnceByTheAnswerToItsDeletion(t *testing.T) {
	clean(t)
	session := sessionID('W', 3)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	uid := machine(t, name).UID
	patch := []byte(`{"spec":{"runStrategy":"Halted"}}`)
	prod := shared.Backends["prod"].Machines(testlab.VMNamespace)
	if _, err := shared.AdminBackend.Machines(testlab.VMNamespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := prod.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	m := lifeOf(t, awaitGone(t, name, uid), uid)
	expectAnswer(t, m, trace.Changed, trace.AuditLog, "1 × by vmwarden-test-admin")
	expectAnswer(t, m, trace.Reaped, trace.AuditLog, "no reaper")
	expectAnswer(t, m, trace.Gone, trace.AuditLog, "answer to the deletion")
}

func TestATraceOfWhatNobodyKnowsSaysWhatWasSearched(t *testing.T) {
	run := traced(t, "lab-of-nobody", shared.ControlPlane.AuditLog())
	expectExit(t, run, 3)
	expectMention(t, "stderr", run.Stderr, `"lab-of-nobody"`, shared.ControlPlane.AuditLog(), "namespace "+testlab.VMNamespace, "prod, dev")
	if run.Stdout != "" {
		t.Errorf("stdout = %q", run.Stdout)
	}
}

func TestATraceThatMayNotReadThePassesTellsTheRestAndFails(t *testing.T) {
	clean(t)
	session := sessionID('W', 4)
	open(t, "prod", session)
	// A reaper may read machines and its own status, but no Events and not the other's status.
	account, err := shared.ReaperConfig(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, account); err != nil {
		t.Fatal(err)
	}
	run, err := shared.Binary(t.Context(), "webhook", "trace", "--config", write(t, "config.yaml", testlab.Config), "--kubeconfig", kubeconfig, session)
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, run, cli.ExitFailed)
	expectMention(t, "stderr", run.Stderr, "Events", "the passes of dev")
	expectMention(t, "stdout", run.Stdout, "created", "still there", "No audit log was read")
}
