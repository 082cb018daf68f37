package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/denials"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/documents"
	"github.com/ttlab/vmwarden/test/lab"
)

// ownLogs are the replicas' logs.
func ownLogs(t *testing.T) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(shared.Dir(), "webhook-*.log"))
	if err != nil || len(logs) < replicas {
		t.Fatalf("the replicas' logs are %v (%v)", logs, err)
	}
	return logs
}

// denialsIn is what the command finds in the logs.
func denialsIn(t *testing.T, logs []string, arguments ...string) denials.Report {
	t.Helper()
	run, err := shared.Binary(t.Context(), "webhook", slices.Concat([]string{"denials", "-o", "json"}, arguments, logs)...)
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, run, cli.ExitOK)
	var report denials.Report
	if err := json.Unmarshal([]byte(run.Stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, run.Stdout)
	}
	if len(report.Read.Broken) > 0 || len(report.Read.UnknownCodes) > 0 || !report.Read.AuditLog {
		t.Errorf("what was read: %+v", report.Read)
	}
	return report
}

func TestDenialsAreFoundInTheRealLogsOnceAndWithWhatBecameOfThem(t *testing.T) {
	clean(t)
	session := sessionID('U', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	for _, suffix := range []string{"b", "c"} {
		if err := createAs(t, "prod", session, withName(name+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	// Denied twice, and allowed when there is room.
	for range 2 {
		expectDenied(t, "the session's fourth", createAs(t, "prod", session, withName(name+"d")), "CapSession")
	}
	prod, dev := shared.Backends["prod"].Machines(lab.VMNamespace), shared.Backends["dev"].Machines(lab.VMNamespace)
	if err := prod.Delete(t.Context(), name+"c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := createAs(t, "prod", session, withName(name+"d")); err != nil {
		t.Fatal(err)
	}
	// Denied and let be, once as a dry run.
	expectDenied(t, "dev deletes prod's machine", dev.Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	expectDenied(t, "dev tries to", dev.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "EnvironmentForeign")

	type found struct {
		Codes, Operation, Name, Later string
		Retries                       int
		DryRun                        bool
	}
	want := []found{
		{"CapSession", "CREATE", name + "d", denials.LaterAllowed, 2, false},
		{"CapSession", "CREATE", name + "d", denials.LaterAllowed, 1, false},
		{"EnvironmentForeign", "DELETE", name, denials.LaterNotSeen, 0, false},
		{"EnvironmentForeign", "DELETE", name, denials.LaterNotSeen, 0, true},
	}
	audit := []string{shared.ControlPlane.AuditLog()}
	for what, c := range map[string]struct{ logs, sources []string }{
		"both logs":            {slices.Concat(ownLogs(t), audit), []string{denials.AuditLog, denials.OwnLog}},
		"the audit log":        {audit, []string{denials.AuditLog}},
		"the audit log, twice": {slices.Concat(audit, audit), []string{denials.AuditLog}},
	} {
		var got []found
		for _, d := range denialsIn(t, c.logs, "--session", session).Denials {
			got = append(got, found{strings.Join(d.Codes, ","), d.Operation, d.Name, d.Later.State, d.Later.Retries, d.DryRun})
			if !slices.Equal(d.Sources, c.sources) {
				t.Errorf("%s: found in %v, want %v", what, d.Sources, c.sources)
			}
			if d.Environment != "prod" || d.RequesterKind != "Backend" || !strings.HasPrefix(d.Message, d.Codes[0]+": ") {
				t.Errorf("%s: %+v", what, d)
			}
			if d.Codes[0] == "CapSession" && (d.Count == "" || d.Limit != "8") {
				t.Errorf("%s: the places are %q of %q", what, d.Count, d.Limit)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found\n%+v, want\n%+v", what, got, want)
		}
	}
}

// One request, many reviews, of which some allow: the audit log has one entry with what each annotation was given first.
func TestADeletecollectionOverAnothersMachineIsOneDenialThatBothLogsTellOf(t *testing.T) {
	clean(t)
	started := time.Now().UTC().Format(time.RFC3339Nano)
	open(t, "dev", sessionID('U', 2))
	open(t, "prod", sessionID('U', 3))
	err := shared.Backends["dev"].Machines(lab.VMNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	expectDenied(t, "dev deletes all there is", err, "EnvironmentForeign")
	deletes := func(logs ...string) (list []*denials.Denial) {
		for _, d := range denialsIn(t, logs, "--since", started, "--code", "EnvironmentForeign").Denials {
			if d.Operation == "DELETE" && d.Kind == "VirtualMachine" && d.Requester == "system:serviceaccount:ttlab-dev:backend" {
				list = append(list, d)
			}
		}
		return list
	}
	logs := append(ownLogs(t), shared.ControlPlane.AuditLog())
	for what, found := range map[string][]*denials.Denial{"both": deletes(logs...), "the audit log": deletes(shared.ControlPlane.AuditLog())} {
		if len(found) != 1 || found[0].Decision != "deny" {
			t.Errorf("%s: found %+v, want one denial", what, found)
		}
	}
}

func TestWhatModeAuditWouldHaveDeniedIsListedWithItsText(t *testing.T) {
	clean(t)
	reconfigure(t, observing)
	claim := backend.Lesson{Session: sessionID('U', 4), Environment: "dev"}
	if _, err := shared.Backends["prod"].Create(t.Context(), backend.VMContainerDisk, claim); err != nil {
		t.Fatal(err)
	}
	report := denialsIn(t, append(ownLogs(t), shared.ControlPlane.AuditLog()), "--session", claim.Session)
	if len(report.Denials) != 1 {
		t.Fatalf("%d are listed, want one", len(report.Denials))
	}
	// The audit log has no text of a request that was admitted: it is our own log's.
	if d := report.Denials[0]; d.Decision != "would-deny" || d.Later.State != denials.LaterAdmitted || !strings.Contains(d.Message, "EnvironmentMismatch: ") ||
		!slices.Equal(d.Sources, []string{denials.AuditLog, denials.OwnLog}) {
		t.Errorf("%+v", d)
	}
}

// TestTheCommandsOnAuditingRun runs the commands of docs/auditing.md on the lab's logs.
func TestTheCommandsOnAuditingRun(t *testing.T) {
	clean(t)
	open(t, "prod", sessionID('U', 5))
	name := backend.Lesson{Session: sessionID('U', 5)}.VMName()
	expectDenied(t, "dev deletes prod's machine", shared.Backends["dev"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	config, kubeconfig := write(t, "config.yaml", lab.Config), filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, shared.Admin); err != nil {
		t.Fatal(err)
	}
	lines, err := documents.Lines("docs/auditing.md", "sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		command, found := strings.CutPrefix(line, "webhook ")
		if !found {
			t.Errorf("%q is not a command that this test can run", line)
			continue
		}
		// The lab has its own places for the logs, and its own session.
		command, _, _ = strings.Cut(command, " > ")
		if strings.HasPrefix(command, "trace ") {
			command = strings.NewReplacer("lab-a0000000", name, "a0000000-0000-4000-8000-000000000001", sessionID('U', 5)).Replace(command)
		}
		var all []string
		for argument := range strings.FieldsSeq(command) {
			switch argument {
			case "/var/log/kubernetes/audit.log":
				all = append(all, shared.ControlPlane.AuditLog())
			case "webhook-*.log":
				all = append(all, ownLogs(t)...)
			case "config.yaml":
				all = append(all, config)
			default:
				all = append(all, argument)
			}
		}
		if strings.Contains(command, "--config") && !strings.Contains(command, "--offline") {
			all = append(all, "--kubeconfig", kubeconfig)
		}
		run, err := shared.Binary(t.Context(), "webhook", all...)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != cli.ExitOK || run.Stdout == "" {
			t.Errorf("%s: exit status %d\n%s", line, run.Status, run.Stderr)
		}
	}
}
