package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// The ids of the backend's own rows (test/backend/manifests/sessions.sql).
const (
	rowExpired   = "a0000000-0000-4000-8000-000000000001"
	rowLive      = "a1000000-0000-4000-8000-000000000002"
	rowGroup     = "a2000000-0000-4000-8000-000000000003"
	rowGhost     = "a3000000-0000-4000-8000-000000000004"
	rowStarting  = "a4000000-0000-4000-8000-000000000005"
	rowPod       = "a5000000-0000-4000-8000-000000000006"
	rowStubborn  = "a6000000-0000-4000-8000-000000000007"
	rowLeftovers = "a7000000-0000-4000-8000-000000000008"
)

// theBackendsWorld makes the backend's rows and, for those that have some, their objects.
func theBackendsWorld(t *testing.T) {
	t.Helper()
	rows := backend.Text(backend.Sessions)
	execute(t, "prod", rows[strings.Index(rows, "insert into"):])
	prod := shared.Backends["prod"]
	for _, id := range []string{rowExpired, rowLive, rowGroup, rowStubborn, rowLeftovers} {
		open(t, "prod", id)
	}
	for member := 1; member <= 2; member++ {
		createAll(t, backend.GroupMember, backend.Lesson{Session: rowGroup, Environment: "prod", Member: member})
	}
	if _, err := prod.Create(t.Context(), backend.LabPod, backend.Lesson{Session: rowPod, Environment: "prod"}); err != nil {
		t.Fatal(err)
	}
	comeOfAge(t, rowLeftovers)
}

func TestAPassDoesWhatTheBackendsRowsCallFor(t *testing.T) {
	clean(t)
	theBackendsWorld(t)
	refuseDeletes(t, backend.Lesson{Session: rowStubborn}.VMName())

	document, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitItemsFailed)
	want := []string{
		"expired a0000000 Done", "expired a2000000 Done", "expired a5000000 Done", "expired a6000000 Failed",
		"ghost a3000000 Done", "orphan a7000000 Done", "orphan a7000000 Done",
	}
	if diff := cmp.Diff(want, results(document)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	for id, status := range map[string]string{
		rowExpired: "expired", rowLive: "running", rowGroup: "expired", rowGhost: "failed", rowStarting: "starting",
		rowPod: "expired", rowStubborn: "running", rowLeftovers: "finished",
	} {
		expectStatus(t, "prod", id, status)
	}
	expectLeft(t, rowLive, rowStubborn)

	// What stood in the way is gone: the next pass does what this one could not.
	acceptDeletes(t)
	document, run = reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	if diff := cmp.Diff([]string{"expired a6000000 Done"}, results(document)); diff != "" {
		t.Errorf("items of the second pass (-want +got):\n%s", diff)
	}
	expectStatus(t, "prod", rowStubborn, "expired")
	expectLeft(t, rowLive)
}

// createAll creates a manifest's objects as prod's backend; those that exist are left as they are.
func createAll(t *testing.T, file string, lesson backend.Lesson) {
	t.Helper()
	objects, err := backend.Objects(file, lesson)
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range objects {
		_, err := shared.Backends["prod"].CreateObject(t.Context(), made, metav1.CreateOptions{})
		if err := ignoreAlreadyExists(err); err != nil {
			t.Fatal(err)
		}
	}
}

// ignoreAlreadyExists is for the group's Service and NetworkPolicy, which each of its members brings along.
func ignoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// expectLeft checks that of all lab objects only those of these sessions, one machine and one Secret each, are left.
func expectLeft(t *testing.T, sessions ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, session := range sessions {
		name := backend.Lesson{Session: session}.VMName()
		want["VirtualMachine/"+name], want["Secret/"+name+"-cloudinit"] = true, true
	}
	got := map[string]bool{}
	for _, name := range machineNames(t) {
		got["VirtualMachine/"+name] = true
	}
	core, selector := clients(t).CoreV1(), metav1.ListOptions{LabelSelector: "ttlab.io/session"}
	secrets, err := core.Secrets(lab.VMNamespace).List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		got["Secret/"+secret.Name] = true
	}
	services, err := core.Services(lab.VMNamespace).List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services.Items {
		got["Service/"+service.Name] = true
	}
	policies, err := clients(t).NetworkingV1().NetworkPolicies(lab.VMNamespace).List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies.Items {
		got["NetworkPolicy/"+policy.Name] = true
	}
	pods, err := core.Pods(lab.PodNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		got["Pod/"+pod.Name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects left (-want +got):\n%s", diff)
	}
	golden, err := core.PersistentVolumeClaims(lab.VMNamespace).Get(t.Context(), "golden-ubuntu-2404", metav1.GetOptions{})
	if err != nil || golden.DeletionTimestamp != nil {
		t.Errorf("the golden disk: %v, deletion %v", err, golden.DeletionTimestamp)
	}
}

func TestPlanIsWhatRunDoesAndDeletesNothing(t *testing.T) {
	clean(t)
	theBackendsWorld(t)
	planned, run := reapjob(t, "prod", "plan")
	expectExit(t, run, reap.ExitClean)
	if got := len(machineNames(t)); got != 7 {
		t.Errorf("%d virtual machines after plan, want all 7", got)
	}
	expectStatus(t, "prod", rowExpired, "running")
	done, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	for i := range done.Items {
		done.Items[i].Result, done.Items[i].Detail = "", ""
	}
	if diff := cmp.Diff(planned.Items, done.Items); diff != "" {
		t.Errorf("what run did is not what plan said (-plan +run):\n%s", diff)
	}
}

func TestAnotherEnvironmentsMachinesAreLeftAlone(t *testing.T) {
	clean(t)
	// As on 2026-09-12: production's machines, of which the development database knows nothing.
	for i := range 3 {
		open(t, "prod", sessionID('p', i))
	}
	open(t, "dev", sessionID('p', 10))
	comeOfAge(t, sessionID('p', 10))
	document, run := reapjob(t, "dev", "run")
	expectExit(t, run, reap.ExitClean)
	want := []string{"orphan 70000010 Done", "orphan 70000010 Done"}
	if diff := cmp.Diff(want, results(document)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	expectLeft(t, sessionID('p', 0), sessionID('p', 1), sessionID('p', 2))
}

func TestADatabaseBehindTheWrongFenceIsNotActedOn(t *testing.T) {
	clean(t)
	open(t, "dev", sessionID('q', 1))
	comeOfAge(t, sessionID('q', 1))
	insert(t, "prod", expired(sessionID('q', 2)), running(sessionID('q', 3)))
	// A development reaper that was given production's database.
	document, run := reapjobWith(t, "dev", shared.ReaperURL("prod"), lab.Config, "run")
	expectExit(t, run, reap.ExitHeld)
	if got, want := holds(document), "expired Fenced, orphan Fenced, ghost Fenced"; got != want {
		t.Errorf("holds = %s, want %s", got, want)
	}
	expectLeft(t, sessionID('q', 1))
	expectStatus(t, "prod", sessionID('q', 2), "running")
	expectStatus(t, "prod", sessionID('q', 3), "running")
}

func TestAFewTooManyOrphansPullTheBrake(t *testing.T) {
	clean(t)
	sessions := make([]string, 5)
	for i := range sessions {
		sessions[i] = sessionID('r', i)
		open(t, "prod", sessions[i])
	}
	comeOfAge(t, sessions[len(sessions)-1])
	document, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitHeld)
	if got := holds(document); got != "orphan Braked" {
		t.Errorf("holds = %s, want orphan Braked", got)
	}
	expectLeft(t, sessions...)
	_, run = reapjob(t, "prod", "run", "--release-brake=orphan")
	expectExit(t, run, reap.ExitClean)
	expectLeft(t)
}

func TestADeadlineNeedsNoDatabase(t *testing.T) {
	clean(t)
	past := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('s', 1), Environment: "prod"})
	setNested(t, past, "2026-01-01T00:00:00Z", "metadata", "annotations", "vmwarden.io/deadline")
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), past, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	open(t, "prod", sessionID('s', 2))
	insert(t, "prod", expired(sessionID('s', 2)))
	// Nobody listens there.
	document, run := reapjobWith(t, "prod", "postgres://reaper:secret-word@127.0.0.1:9/prod", lab.Config, "run")
	expectExit(t, run, reap.ExitCouldNotRun)
	if diff := cmp.Diff([]string{"deadline 73000001 Done"}, results(document)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if strings.Contains(run.Stdout+run.Stderr, "secret-word") {
		t.Error("the database's password is in the output")
	}
	expectLeft(t, sessionID('s', 2))
}

func TestASecondPassLeavesTheFirstAloneAndLooksAtDeadlines(t *testing.T) {
	clean(t)
	past := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('t', 2), Environment: "prod"})
	setNested(t, past, "2026-01-01T00:00:00Z", "metadata", "annotations", "vmwarden.io/deadline")
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), past, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	insert(t, "prod", expired(sessionID('t', 1)))
	p := pass(t, "prod")
	alone, err := p.Store.(*reap.PostgresStore).Alone(t.Context(), p.Settings.ItemTimeout, func() {
		document, run := reapjob(t, "prod", "run")
		expectExit(t, run, reap.ExitClean)
		if diff := cmp.Diff([]string{"deadline 74000002 Done"}, results(document)); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		if !strings.Contains(run.Stdout, "another pass is at work; only deadlines are looked at") {
			t.Errorf("stdout = %s", run.Stdout)
		}
	})
	if err != nil || !alone {
		t.Fatalf("alone = %t, %v", alone, err)
	}
	expectStatus(t, "prod", sessionID('t', 1), "running")
}
