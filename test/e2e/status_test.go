package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/internal/status"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// forget makes it so that no pass of an environment ever ran, and that there are no Events.
func forget(t *testing.T, environment string) {
	t.Helper()
	core := clients(t).CoreV1()
	name := status.ConfigMapName(environment)
	found, err := core.ConfigMaps(lab.VMNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Data = nil
	if _, err := core.ConfigMaps(lab.VMNamespace).Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{lab.VMNamespace, lab.PodNamespace} {
		if err := core.Events(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// showStatus runs `reapjob status`, which needs no database.
func showStatus(t *testing.T, environment string, arguments ...string) lab.Run {
	t.Helper()
	run, err := shared.ReapjobWith(t.Context(), environment, "", lab.Config, append([]string{"status"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func expectMention(t *testing.T, what, text string, mentions ...string) {
	t.Helper()
	for _, mention := range mentions {
		if !strings.Contains(text, mention) {
			t.Errorf("%s does not mention %q:\n%s", what, mention, text)
		}
	}
}

// events are the Events of the lab's namespaces as lines of type, reason, kind and name.
func events(t *testing.T) []string {
	t.Helper()
	lines := []string{}
	for _, namespace := range []string{lab.VMNamespace, lab.PodNamespace} {
		found, err := clients(t).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range found.Items {
			if event.Source.Component == "vmwarden-reapjob" {
				lines = append(lines, strings.Join([]string{event.Type, event.Reason, event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name}, " "))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestStatusTellsThePassesAndThatNoneEverRan(t *testing.T) {
	clean(t)
	forget(t, "prod")
	run := showStatus(t, "prod")
	expectExit(t, run, cli.ExitFailed)
	expectMention(t, "status", run.Stdout, "no pass has ever run")

	theBackendsWorld(t)
	stubborn := backend.Lesson{Session: rowStubborn}.VMName()
	refuseDeletes(t, stubborn)
	message := write(t, "termination-log", "from the pass before, and longer than what comes now")
	_, run = reapjob(t, "prod", "run", "--termination-log", message)
	expectExit(t, run, reap.ExitItemsFailed)
	content, err := os.ReadFile(message)
	if err != nil {
		t.Fatal(err)
	}
	expectMention(t, "the termination message", string(content), "6 done (3 expired, 2 orphan, 1 ghost)", "1 failed", "exit status 3", rowStubborn, lab.RefusalMessage)
	if strings.Contains(string(content), "the pass before") {
		t.Error("the old termination message is still there")
	}
	want := []string{
		"Normal Reaped Pod/lab-a5000000", "Normal Reaped Secret/lab-a7000000-cloudinit", "Normal Reaped VirtualMachine/lab-a0000000",
		"Normal Reaped VirtualMachine/lab-a2000000", "Normal Reaped VirtualMachine/lab-a7000000",
		"Normal SessionFailed ConfigMap/vmwarden-status-prod", "Warning ReapFailed VirtualMachine/lab-a6000000",
	}
	if got := events(t); !slices.Equal(got, want) {
		t.Errorf("Events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	run = showStatus(t, "prod")
	expectExit(t, run, reap.ExitItemsFailed)
	expectMention(t, "status", run.Stdout, "no pass was ever clean", rowStubborn, lab.RefusalMessage)

	acceptDeletes(t)
	_, run = reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	run = showStatus(t, "prod", "-o", "json")
	expectExit(t, run, reap.ExitClean)
	var told status.Status
	if err := json.Unmarshal([]byte(run.Stdout), &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Passes) != 2 || told.LastClean == nil || !told.LastClean.Equal(told.Passes[0].StartedAt) || !told.Passes[0].StartedAt.After(told.Passes[1].StartedAt) {
		t.Errorf("status = %+v, want two passes, the newest first and clean", told)
	}
	if total := told.DirectionTotals["expired"]; total.Done != 4 || total.Failed != 1 || told.PassTotals[0] != 1 || told.PassTotals[3] != 1 {
		t.Errorf("totals = %+v, %v", told.DirectionTotals, told.PassTotals)
	}
}

func TestAHeldPassSaysSoEverywhere(t *testing.T) {
	clean(t)
	forget(t, "dev")
	message := write(t, "termination-log", "")
	_, run := reapjobWith(t, "dev", shared.ReaperURL("prod"), lab.Config, "run", "--termination-log", message)
	expectExit(t, run, reap.ExitHeld)
	content, err := os.ReadFile(message)
	if err != nil {
		t.Fatal(err)
	}
	expectMention(t, "the termination message", string(content), "held back: orphan (Fenced)")
	expectMention(t, "the log", run.Stderr, `"direction held back"`, `"cause":"Fenced"`)
	if got, want := events(t), slices.Repeat([]string{"Warning ReapHeld ConfigMap/vmwarden-status-dev"}, 3); !slices.Equal(got, want) {
		t.Errorf("Events = %v, want %v", got, want)
	}
	run = showStatus(t, "dev")
	expectExit(t, run, reap.ExitHeld)
	expectMention(t, "status", run.Stdout, "ghost (Fenced)")
}

// TestAReportThatCannotBeWrittenChangesNothing takes the reaper's rights to report away, and gives it a termination log that is a
// directory.
func TestAReportThatCannotBeWrittenChangesNothing(t *testing.T) {
	clean(t)
	session := sessionID('f', 1)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	roles := clients(t).RbacV1().Roles(lab.VMNamespace)
	role, err := roles.Get(t.Context(), "vmwarden-reaper-prod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	without := role.DeepCopy()
	without.Rules = slices.DeleteFunc(without.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "configmaps") })
	reaper := lab.ReaperUsername("prod")
	report := authorizationv1.ResourceAttributes{Namespace: lab.VMNamespace, Verb: "update", Resource: "configmaps", Name: "vmwarden-status-prod"}
	t.Cleanup(func() {
		role.ResourceVersion = ""
		if _, err := roles.Update(contextAfter(t), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitAccess(t, true, reaper, report)
	})
	if _, err := roles.Update(t.Context(), without, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAccess(t, false, reaper, report)
	_, run := reapjob(t, "prod", "run", "--termination-log", t.TempDir())
	expectExit(t, run, reap.ExitClean)
	expectStatus(t, "prod", session, "expired")
	expectLeft(t)
	expectMention(t, "the log", run.Stderr, "the status could not be written", "the termination message could not be written")
}

func TestABrokenStatusIsReplaced(t *testing.T) {
	clean(t)
	forget(t, "prod")
	core := clients(t).CoreV1().ConfigMaps(lab.VMNamespace)
	found, err := core.Get(t.Context(), status.ConfigMapName("prod"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Data = map[string]string{"status.json": "{"}
	if _, err := core.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expectExit(t, showStatus(t, "prod"), cli.ExitFailed)
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	expectExit(t, showStatus(t, "prod"), reap.ExitClean)
}

func TestEventsOfOnePassAreBounded(t *testing.T) {
	report := reap.Report{Environment: "prod"}
	for range 100 {
		report.Items = append(report.Items, reap.Item{Result: reap.Done, Action: reap.Action{Direction: reap.Ghost, Reason: strings.Repeat("é", 5000)}})
	}
	made := report.Events(corev1.ObjectReference{Namespace: lab.VMNamespace, Kind: "ConfigMap", Name: "vmwarden-status-prod"})
	if len(made) != 20 || !strings.HasPrefix(made[19].Message, "81 more") {
		t.Errorf("%d Events, the last %q", len(made), made[len(made)-1].Message)
	}
	core := clients(t).CoreV1()
	if err := reap.SendEvents(t.Context(), core, made[:1]); err != nil {
		t.Errorf("the API server refuses an Event with a long text: %v", err)
	}
	forget(t, "prod")
}

func TestThePageHasEachPassOnceWhetherItsLogTellsOfItOrTheConfigMap(t *testing.T) {
	clean(t)
	forget(t, "prod")
	var log strings.Builder
	for _, environment := range []string{"prod", "dev", "prod"} {
		_, run := reapjob(t, environment, "run")
		expectExit(t, run, reap.ExitClean)
		// A container's log has both streams.
		log.WriteString(run.Stdout + run.Stderr)
	}
	file := write(t, "reapjob.log", log.String())
	page := showStatus(t, "prod", "-o", "html", file)
	expectExit(t, page, reap.ExitClean)
	expectMention(t, "the page", page.Stdout, "Passes of environment prod", "Shown are 2 passes", "the last 2 that the status ConfigMap keeps, and those in "+file)
	forget(t, "prod")
	page = showStatus(t, "prod", "-o", "html", file)
	expectExit(t, page, cli.ExitFailed)
	expectMention(t, "the page", page.Stdout, "Shown are 2 passes", "No pass has ever run, as far as the status ConfigMap tells")
	expectMention(t, "stderr", showStatus(t, "prod", "-o", "html", "missing.log").Stderr, "missing.log")
	expectExit(t, showStatus(t, "prod", file), cli.ExitWrongUse)
	expectExit(t, showStatus(t, "prod", "-o", "json", "--since", "1h"), cli.ExitWrongUse)
}
