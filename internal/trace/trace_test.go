package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/status"
)

func TestAnAuditLogAtTheLevelMetadataTellsWhoAndWhenAndSaysWhatItLeavesOut(t *testing.T) {
	mutated := annotated(mutationPrefix+"round_0_index_0", `{"configuration":"vmwarden","webhook":"mutate.vmwarden.io","mutated":true}`)
	report := told(t, machineName,
		entry(1, "create", strangeUser, denied("EnvironmentMismatch")),
		entry(2, "create", backendUser, reviewed, mutated),
		entry(3, "patch", "alice"),
		entry(4, "delete", reaperUser, removed("uid-1")),
	)
	m := only(t, report)
	if m.UID != "uid-1" || m.Session != session || m.Environment != "prod" {
		t.Errorf("the machine is %+v", m)
	}
	expect(t, m, Created, AuditLog, backendUser, "as a Backend")
	expect(t, m, Stamped, AuditLog, "mutate.vmwarden.io", "does not tell what")
	expect(t, m, Denied, AuditLog, "1 × EnvironmentMismatch before its creation", strangeUser)
	expect(t, m, Changed, AuditLog, "1 × by alice")
	expect(t, m, Extended, "", "sessions table alone")
	expect(t, m, Due, "")
	expect(t, m, Reaped, "", "--config")
	expect(t, m, DeletionAsked, AuditLog, reaperUser)
	expect(t, m, Gone, AuditLog, "answer to the deletion")
	object := "virtualmachine/" + machineName
	want := []string{
		"audit log " + object + " denied", "audit log " + object + " created", "audit log " + object + " stamped", "audit log " + object + " changed",
		"audit log " + object + " deletion asked", "audit log " + object + " gone",
	}
	if diff := cmp.Diff(want, story(report)); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
	if text := strings.Join(report.NotKnown, "\n"); !strings.Contains(text, "level Metadata") || !strings.Contains(text, "cluster was not asked") {
		t.Errorf("not known: %s", text)
	}
}

func TestBodiesTellWhatWasStampedWhatChangedAndWhenTheLastFinalizerWent(t *testing.T) {
	deadline := "2026-11-29T15:15:00Z"
	metadata := func(finalizers []string, deleting bool, more ...string) document {
		annotations := document{lab.DeadlineAnnotation: deadline}
		if len(more) > 0 {
			annotations[lab.ReapedAnnotation] = more[0]
		}
		m := document{"name": machineName, "uid": "uid-1", "generation": 1, "annotations": annotations, "finalizers": finalizers}
		if deleting {
			m["deletionTimestamp"] = noon.Format(time.RFC3339)
		}
		return m
	}
	mark := `{"reason":"expired","since":"2026-11-29T12:30:00Z","deletionAskedAt":"2026-11-29T12:31:00Z"}`
	patched := annotated(patchPrefix+"round_0_index_0", `{"configuration":"vmwarden","webhook":"mutate.vmwarden.io","patch":[`+
		`{"op":"add","path":"/metadata/annotations","value":{"vmwarden.io/deadline":"`+deadline+`","vmwarden.io/created-by":"x"}},`+
		`{"op":"add","path":"/spec/template/metadata/labels/ttlab.io~1env","value":"prod"},`+
		`{"op":"add","path":"/metadata/ownerReferences","value":[{"kind":"VirtualMachine","name":"lead"}]}]}`)
	m := only(t, told(t, machineName,
		entry(0, "create", backendUser, reviewed, patched, answered(metadata([]string{"a"}, false))),
		entry(1, "update", "alice", answered(metadata([]string{"a", "b"}, false))),
		entry(31, "patch", reaperUser, with("requestObject", document{"metadata": document{"annotations": document{lab.ReapedAnnotation: mark}}}),
			answered(metadata([]string{"a", "b"}, false, mark))),
		entry(31, "delete", reaperUser, answered(metadata([]string{"a", "b"}, true, mark))),
		entry(32, "update", "virt-controller", answered(metadata([]string{"a"}, true, mark))),
		entry(33, "update", "virt-controller", answered(metadata(nil, true, mark))),
	))
	expect(t, m, Stamped, AuditLog, "annotation vmwarden.io/deadline="+deadline, "annotation vmwarden.io/created-by=x", "template label ttlab.io/env=prod", "owner VirtualMachine/lead")
	expect(t, m, Changed, AuditLog, "1 × by alice", "2 × by virt-controller")
	expect(t, m, Extended, "", "the session ended at 2026-11-29T12:30:00Z", "30m0s after the machine's creation")
	expect(t, m, Due, AuditLog)
	expect(t, m, Reaped, AuditLog, "expired")
	expect(t, m, Gone, AuditLog, "virt-controller", "last finalizer")
	if gone := answer(t, m, Gone); !gone.Time.Equal(noon.Add(33*time.Minute + time.Millisecond)) {
		t.Errorf("gone at %s", gone.Time)
	}
}

func TestANameThatIsUsedAgainHasTwoLives(t *testing.T) {
	for name, lines := range map[string][]string{
		"by UID": {
			entry(1, "create", backendUser, reviewed), entry(2, "update", "alice", ref("uid", "uid-1")), entry(3, "delete", backendUser),
			// Its creation is not in the log.
			entry(5, "update", "alice", ref("uid", "uid-2")), entry(6, "delete", backendUser, removed("uid-2")),
		},
		"by creation": {
			entry(1, "create", backendUser, reviewed), entry(2, "update", "alice"), entry(3, "delete", backendUser),
			entry(4, "create", strangeUser, denied("CapVMs")), entry(5, "create", backendUser, reviewed), entry(6, "delete", backendUser, removed("uid-2")),
		},
	} {
		report := told(t, machineName, lines...)
		if len(report.Machines) != 2 {
			t.Errorf("%s: %d lives, want 2: %+v", name, len(report.Machines), report.Machines)
			continue
		}
		expect(t, report.Machines[0], Changed, AuditLog, "1 × by alice")
		expect(t, report.Machines[0], Gone, AuditLog, "when its name was used again")
		expect(t, report.Machines[1], Gone, AuditLog, "answer to the deletion")
		if report.Machines[1].UID != "uid-2" {
			t.Errorf("%s: the second is %s", name, report.Machines[1].UID)
		}
		if name == "by creation" {
			expect(t, report.Machines[1], Denied, AuditLog, "1 × CapVMs before its creation")
		}
	}
}

func TestAMachineThatWasDeniedAndNeverMadeIsSaidNeverToHaveCome(t *testing.T) {
	m := only(t, told(t, machineName, entry(1, "create", strangeUser, denied("CapVMs")), entry(2, "create", strangeUser, denied("CapVMs"), with("auditID", "other"),
		annotated("validate.vmwarden.io/review", "review-2"))))
	expect(t, m, Created, "")
	expect(t, m, Denied, AuditLog, "2 × CapVMs")
	expect(t, m, Gone, AuditLog, "never came to be")
}

func TestADenialThatBothLogsTellOfIsOneLineWithTheTextOfOurs(t *testing.T) {
	ours := own(1, "admission denied", document{"review": "review-1", "codes": []string{"CapVMs"}, "operation": "CREATE", "kind": "VirtualMachine",
		"namespace": "lab-vms", "name": machineName, "uid": "never", "session": session, "requester": strangeUser, "message": "CapVMs: full"})
	audit := entry(1, "create", strangeUser, denied("CapVMs"))
	for name, lines := range map[string][]string{"audit log first": {audit, ours}, "ours first": {ours, audit}, "ours twice": {ours, ours, audit}} {
		report := told(t, machineName, lines...)
		if len(report.Timeline) != 1 || report.Timeline[0].Source != AuditLog || !strings.Contains(report.Timeline[0].Text, "CapVMs: full") {
			t.Errorf("%s: %+v", name, report.Timeline)
		}
	}
}

func TestASessionHasAllItsMachinesAndWhatBelongsToThemWhateverTheOrderOfTheFiles(t *testing.T) {
	lines := []string{
		entry(0, "create", backendUser, reviewed, about("secrets", machineName+"-cloudinit")),
		entry(1, "create", backendUser, reviewed),
		entry(2, "create", backendUser, reviewed, about("virtualmachines", machineName+"b")),
		entry(3, "create", "virt-controller", about("virtualmachineinstances", machineName)),
		entry(4, "create", "virt-controller", about("pods", "virt-launcher-"+machineName+"-x7x7x")),
		// Of the lab of another, whose names begin alike.
		entry(4, "create", "virt-controller", about("virtualmachineinstances", machineName+"c")),
		entry(4, "create", "virt-controller", about("pods", "virt-launcher-"+machineName+"c-x7x7x")),
		entry(5, "delete", reaperUser, removed("uid-1")),
		entry(6, "delete", reaperUser, about("secrets", machineName+"-cloudinit")),
	}
	slices.Reverse(lines)
	report := told(t, session, lines...)
	want := []string{
		"secret/" + machineName + "-cloudinit created", "virtualmachine/" + machineName + " created", "virtualmachine/" + machineName + "b created",
		"virtualmachineinstance/" + machineName + " created", "pod/virt-launcher-" + machineName + "-x7x7x created",
		"virtualmachine/" + machineName + " deletion asked", "virtualmachine/" + machineName + " gone", "secret/" + machineName + "-cloudinit deletion asked",
	}
	for i := range want {
		want[i] = "audit log " + want[i]
	}
	if diff := cmp.Diff(want, story(report)); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
	if len(report.Machines) != 2 {
		t.Errorf("machines: %+v", report.Machines)
	}
	for _, line := range told(t, machineName+"b", lines...).Timeline {
		if line.Object == "virtualmachine/"+machineName {
			t.Errorf("of a machine that was not asked for: %+v", line)
		}
	}
}

func TestOurOwnLogsTellWhyAndWhenAMachineWent(t *testing.T) {
	m := only(t, told(t, machineName,
		own(31, lab.ItemMessage, document{"direction": "expired", "session": session, "objects": []string{"VirtualMachine/" + machineName}, "result": "Done", "reason": "its end has passed"}),
		own(32, lab.GoneMessage, document{"machine": machineName, "environment": "prod", "reason": "expired", "since": noon, "deletionAskedAt": noon.Add(time.Minute), "goneAt": noon.Add(2 * time.Minute)}),
	))
	expect(t, m, Reaped, WebhookLog, "expired")
	expect(t, m, DeletionAsked, WebhookLog)
	expect(t, m, Gone, WebhookLog, "the leader's watch", "2m0s after it should have been")
	expect(t, m, Changed, "", "no audit log")
}

func TestADryRunAndARefusalChangeNothing(t *testing.T) {
	m := only(t, told(t, machineName,
		entry(1, "create", backendUser, reviewed),
		entry(2, "delete", reaperUser, with("requestURI", "/apis/x?dryRun=All"), removed("uid-1")),
		entry(3, "delete", reaperUser, refused(500)),
	))
	expect(t, m, DeletionAsked, "")
	expect(t, m, Gone, "")
	expect(t, m, Changed, AuditLog, "by nobody")
}

// Whoever sends a request chooses its parameters, and the fields of a patch.
func TestWhatOnlyLooksLikeADryRunIsTold(t *testing.T) {
	for name, line := range map[string]string{
		"another parameter":      entry(2, "delete", "alice", with("requestURI", "/apis/x?fieldManager=dryRun=All"), removed("uid-1")),
		"a field of a patch":     entry(2, "patch", "alice", with("requestObject", document{"dryRun": []string{"All"}, "spec": document{"runStrategy": "Halted"}})),
		"a name in the path":     entry(2, "delete", "alice", with("requestURI", "/apis/dryRun=All"), removed("uid-1")),
		"another field of a URL": entry(2, "update", "alice", with("requestURI", "/apis/x?dryRun=&fieldManager=All")),
	} {
		for _, told := range told(t, machineName, entry(1, "create", backendUser, reviewed), line).Timeline {
			if strings.Contains(told.Text, "dry run") {
				t.Errorf("%s: told as %+v", name, told)
			}
		}
	}
	m := only(t, told(t, machineName, entry(1, "create", backendUser, reviewed), entry(2, "delete", reaperUser, with("requestURI", "/apis/x?dryRun=%41ll"), removed("uid-1"))))
	expect(t, m, Gone, "")
}

func TestAPatchSaysNothingOfAnObjectThatTheAPIServerDoesNotReadInIt(t *testing.T) {
	m := only(t, told(t, machineName,
		entry(1, "create", backendUser, reviewed, ref("uid", "uid-1")),
		entry(2, "patch", "alice", with("requestObject", document{
			"preconditions": document{"uid": "uid-9"},
			"Metadata":      document{"uid": "uid-8", "annotations": document{lab.ReapedAnnotation: "by nobody"}},
		})),
	))
	if m.UID != "uid-1" {
		t.Errorf("the machine is %s", m.UID)
	}
	expect(t, m, Changed, AuditLog, "1 × by alice")
}

func TestWhatSomebodyElseRefusesInModeAuditIsNoDenialOfOurs(t *testing.T) {
	wouldBe := func(d document) {
		denied("CapVMs")(d)
		annotated("validate.vmwarden.io/decision", "would-deny")(d)
		with("responseStatus", document{"code": 403, "message": "exceeded quota"})(d)
	}
	report := told(t, machineName, entry(1, "create", backendUser, wouldBe))
	object := "audit log virtualmachine/" + machineName
	if diff := cmp.Diff([]string{object + " would be denied", object + " refused"}, story(report)); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
	m := only(t, report)
	expect(t, m, Denied, AuditLog, "nothing")
	expect(t, m, Gone, AuditLog, "never came to be")
}

func TestADeletecollectionIsToldOfEachMachineThatItsAnswerLists(t *testing.T) {
	item := func(name, uid string) document {
		return document{"metadata": document{"name": name, "uid": uid, "labels": document{"ttlab.io/session": session}}}
	}
	report := told(t, session,
		entry(1, "create", backendUser, reviewed, ref("uid", "uid-1")),
		entry(2, "create", backendUser, reviewed, about("virtualmachines", machineName+"b"), ref("uid", "uid-2")),
		entry(3, "deletecollection", "alice", about("virtualmachines", ""),
			with("responseObject", document{"kind": "VirtualMachineList", "items": []document{item(machineName, "uid-1"), item(machineName+"b", "uid-2")}})),
	)
	if len(report.Machines) != 2 {
		t.Fatalf("machines: %+v", report.Machines)
	}
	for _, m := range report.Machines {
		expect(t, m, DeletionAsked, AuditLog, "alice", "in a deletecollection")
	}
}

func TestAnApplyThatCreatesIsACreation(t *testing.T) {
	m := only(t, told(t, machineName, entry(1, "patch", backendUser, reviewed, with("responseStatus", document{"code": 201}))))
	expect(t, m, Created, AuditLog, backendUser)
}

func TestADeletecollectionIsToldWhileTheMachineMayHaveBeenInIt(t *testing.T) {
	collection := func(minute int) string {
		return entry(minute, "deletecollection", "alice", about("virtualmachines", ""))
	}
	report := told(t, machineName, collection(0), entry(1, "create", backendUser, reviewed), collection(2), entry(3, "delete", "alice", removed("uid-1")), collection(4))
	var times []time.Time
	for _, line := range report.Timeline {
		if line.What == Collection {
			times = append(times, line.Time)
		}
	}
	if len(times) != 1 || !times[0].Equal(noon.Add(2*time.Minute)) {
		t.Errorf("told at %v", times)
	}
	if lines := story(told(t, "another", collection(0))); len(lines) > 0 {
		t.Errorf("a deletecollection alone is a trace of a name: %v", lines)
	}
	listed := told(t, machineName, entry(1, "create", backendUser, reviewed), entry(2, "deletecollection", "alice", about("virtualmachines", ""),
		with("responseObject", document{"items": []document{{"metadata": document{"name": machineName, "uid": "uid-1"}}}})))
	expect(t, only(t, listed), DeletionAsked, AuditLog, "alice", "in a deletecollection")
}

func clusterMachine(changes ...func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab-vms", Name: machineName, UID: "uid-1", CreationTimestamp: metav1.NewTime(noon),
		Labels:      map[string]string{"ttlab.io/session": session, "ttlab.io/env": "prod"},
		Annotations: map[string]string{lab.CreatedByAnnotation: backendUser, lab.DeadlineAnnotation: "2026-11-29T15:15:00Z"},
	}}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func TestAMachineThatIsThereTellsWithoutAnyLogWhoMadeItAndWhenItIsDue(t *testing.T) {
	c := newCollector(t, session)
	c.Add(Facts{At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: true, Machines: []metav1.PartialObjectMetadata{clusterMachine()}})
	report := c.Report()
	m := only(t, report)
	expect(t, m, Created, Annotation, backendUser)
	expect(t, m, Stamped, Annotation, lab.CreatedByAnnotation, "audit log alone")
	expect(t, m, Denied, "", "no audit log")
	expect(t, m, Due, Annotation)
	expect(t, m, Reaped, Cluster, "not reaped")
	expect(t, m, DeletionAsked, Cluster, "no")
	expect(t, m, Gone, Cluster, "still there")
	if diff := cmp.Diff([]string{"cluster virtualmachine/" + machineName + " created", "annotation virtualmachine/" + machineName + " due"}, story(report)); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
}

func TestAMachineThatTheClusterDoesNotHaveIsGoneOnlyIfItCouldBeLookedUp(t *testing.T) {
	for looked, source := range map[bool]Source{true: Cluster, false: ""} {
		c := newCollector(t, machineName)
		read(t, c, entry(1, "create", backendUser, reviewed))
		c.Add(Facts{At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: looked})
		expect(t, only(t, c.Report()), Gone, source)
	}
}

func TestTheClustersMachineIsThatOfItsUIDOrOfItsCreation(t *testing.T) {
	c := newCollector(t, machineName)
	read(t, c, entry(-9, "create", backendUser, reviewed), entry(-8, "delete", backendUser), entry(0, "create", backendUser, reviewed))
	c.Add(Facts{At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: true, Machines: []metav1.PartialObjectMetadata{clusterMachine()}})
	report := c.Report()
	if len(report.Machines) != 2 || report.Machines[0].UID != "" || report.Machines[1].UID != "uid-1" {
		t.Fatalf("machines: %+v", report.Machines)
	}
	expect(t, report.Machines[1], Gone, Cluster, "still there")
}

func TestEventsAndPassesAreToldWhereTheyNameWhatIsAskedFor(t *testing.T) {
	event := func(name, message string) corev1.Event {
		return corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab-vms", Name: "event"}, InvolvedObject: corev1.ObjectReference{Kind: "VirtualMachine", Namespace: "lab-vms", Name: name},
			Reason: "Reaped", Message: message, Source: corev1.EventSource{Component: "vmwarden-reapjob"},
			FirstTimestamp: metav1.NewTime(noon.Add(time.Minute)), Count: 1,
		}
	}
	s := status.Status{Environment: "prod"}
	s.Add(status.Pass{StartedAt: noon.Add(-time.Hour), ExitStatus: 4, Holds: []status.Hold{{Direction: "orphan", Cause: "Braked", Reason: "before its time"}}})
	s.Add(status.Pass{StartedAt: noon.Add(2 * time.Minute), ExitStatus: 3,
		Holds:    []status.Hold{{Direction: "orphan", Cause: "Braked", Reason: "too many"}},
		Failures: []status.Failure{{Direction: "expired", Session: session, Detail: "no answer"}, {Direction: "expired", Session: "another", Detail: "not ours"}},
		Notices:  []status.Notice{{What: "VirtualMachine/" + machineName, Reason: "is stuck"}, {What: "VirtualMachine/" + machineName + "c", Reason: "not ours"}}})
	c := newCollector(t, machineName)
	c.Add(Facts{
		At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: true, Machines: []metav1.PartialObjectMetadata{clusterMachine()},
		Events:   []corev1.Event{event(machineName, "expired of session "+session), event("lead", "deleted: VirtualMachine/lead, VirtualMachine/"+machineName), event(machineName+"c", "not ours")},
		Statuses: []status.Status{s},
	})
	report := c.Report()
	want := []string{
		"cluster virtualmachine/" + machineName + " created", "Event virtualmachine/" + machineName + " event", "Event virtualmachine/lead event",
		"status ConfigMap session/" + session + " pass failed", "status ConfigMap virtualmachine/" + machineName + " pass kept",
		"status ConfigMap direction/orphan pass held back", "annotation virtualmachine/" + machineName + " due",
	}
	if diff := cmp.Diff(want, story(report)); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
	for _, line := range report.Timeline {
		if strings.Contains(line.Text, "not ours") || strings.Contains(line.Text, "before its time") {
			t.Errorf("%+v", line)
		}
	}
}

func TestTheManyWritesOfAStatusAreOneLine(t *testing.T) {
	var lines []string
	for minute := range 100 {
		lines = append(lines,
			entry(minute, "patch", "virt-controller", ref("subresource", "status")),
			entry(minute, "update", "virt-handler", about("virtualmachineinstances", machineName)))
	}
	report := told(t, machineName, append(lines, entry(200, "patch", "alice"))...)
	if len(report.Timeline) != 3 || report.Timeline[0].Times != 100 || !report.Timeline[0].Last.Equal(noon.Add(99*time.Minute)) {
		t.Errorf("%d lines, the first %+v", len(report.Timeline), report.Timeline[0])
	}
	expect(t, only(t, report), Changed, AuditLog, "1 × by alice")
}

func TestWhatDoesNotFitIsCountedAndTheNewestStays(t *testing.T) {
	c := newCollector(t, machineName)
	c.records.Limit = 5
	var lines []string
	for minute := range 50 {
		lines = append(lines, entry(minute, "update", fmt.Sprintf("user-%d", minute)))
	}
	if err := c.Read("log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	report := c.Report()
	if len(report.Timeline) != 5 || report.Read.LeftOut != 45 || report.Timeline[4].Who != "user-49" {
		t.Errorf("%d lines, %d left out", len(report.Timeline), report.Read.LeftOut)
	}
}

func TestABrokenLineIsCountedAndTheOthersAreTold(t *testing.T) {
	report := told(t, machineName, entry(1, "create", backendUser, reviewed), `{"kind":"Event","apiVersion":"audit.k8s.io/v1","objectRef":{"name":"`+machineName)
	if len(report.Read.Broken) != 1 || report.Read.Broken[0].First != 2 || len(report.Machines) != 1 {
		t.Errorf("%+v", report.Read)
	}
}

func TestATerminalIsToldNothingThatItWouldObey(t *testing.T) {
	const hostile = "\x1b[2J\u202ealice\tx\n"
	report := told(t, machineName, entry(1, "update", hostile, denied(hostile)), entry(2, "create", hostile, refused(409), with("responseStatus", document{"code": 409, "message": hostile})),
		own(3, lab.ItemMessage, document{"direction": hostile, "session": session, "objects": []string{"VirtualMachine/" + machineName}, "result": "Done", "reason": hostile}))
	var out bytes.Buffer
	if err := report.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\t") || !strings.Contains(out.String(), `\x1b[2J\u202e`) {
		t.Errorf("%q", out.String())
	}
}

func TestAnEmptyReportHasListsAndNoNulls(t *testing.T) {
	var out bytes.Buffer
	if err := told(t, machineName).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "null") {
		t.Error(out.String())
	}
}

func TestWhoIsAReaperIsTheConfigurationsToSay(t *testing.T) {
	loaded, err := config.Parse([]byte("apiVersion: config.vmwarden.io/v1alpha1\nkind: WardenConfig\nvmNamespace: lab-vms\nenvironments:\n" +
		"- {name: prod, backends: [{namespace: ttlab-prod, name: backend}], reaper: {namespace: ttlab-prod, name: reaper}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]Source{reaperUser: "", "alice": AuditLog} {
		c := NewCollector(machineName, Options{Labels: config.DefaultLabels(), Identities: loaded.Contract().Identities})
		read(t, c, entry(1, "create", backendUser, reviewed), entry(2, "delete", who, removed("uid-1")))
		expect(t, only(t, c.Report()), Reaped, want)
	}
}

func TestALineThatIsGivenTwiceIsToldOnce(t *testing.T) {
	line := entry(1, "update", "alice")
	expect(t, only(t, told(t, machineName, line, line)), Changed, AuditLog, "1 × by alice")
	// A client may choose the audit id.
	other := strings.ReplaceAll(entry(2, "update", "alice"), "audit-2-update", "audit-1-update")
	expect(t, only(t, told(t, machineName, line, other)), Changed, AuditLog, "2 × by alice")
}

func TestARequestThatWasOnlyReceivedIsNoChange(t *testing.T) {
	received := strings.ReplaceAll(entry(1, "update", "alice"), "ResponseComplete", "RequestReceived")
	if lines := story(told(t, machineName, received)); len(lines) > 0 {
		t.Errorf("told: %v", lines)
	}
}

func TestWhatIsKnownToTheSecondStandsAfterWhatHappenedWithinIt(t *testing.T) {
	c := newCollector(t, machineName)
	read(t, c, strings.ReplaceAll(entry(1, "update", "alice"), "12:01:00Z", "12:01:00.9Z"))
	c.Add(Facts{At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: true, Machines: []metav1.PartialObjectMetadata{clusterMachine()}, Events: []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Name: "status"}, FirstTimestamp: metav1.NewTime(noon.Add(time.Minute)), Message: "session " + session + ".",
	}}})
	want := []string{"cluster virtualmachine/" + machineName + " created", "audit log virtualmachine/" + machineName + " changed", "Event configmap/status event"}
	if got := story(c.Report()); !slices.Equal(got[:min(3, len(got))], want) {
		t.Errorf("time line %v, want %v first", got, want)
	}
}

func TestAMarkThatTellsNoTimeIsNone(t *testing.T) {
	c := newCollector(t, machineName)
	c.Add(Facts{At: noon.Add(time.Hour), Namespace: "lab-vms", Looked: true, Machines: []metav1.PartialObjectMetadata{clusterMachine(func(m *metav1.PartialObjectMetadata) {
		m.Annotations[lab.ReapedAnnotation] = `{"reason":"expired"}`
	})}})
	expect(t, only(t, c.Report()), Reaped, Cluster, "not reaped")
}

func TestALauncherWhoseNameIsNotInTheLogIsTheMachinesWhereTheSessionHasOneAlone(t *testing.T) {
	launcher := entry(2, "create", "virt-controller", reviewed, about("pods", ""))
	uidOf := func(report Report) string {
		at := slices.IndexFunc(report.Timeline, func(l Line) bool { return l.Object == "pod/?" })
		if at < 0 {
			t.Fatalf("the launcher is not told: %v", story(report))
		}
		return report.Timeline[at].UID
	}
	first, second := entry(0, "create", backendUser, reviewed, answered(document{"name": machineName, "uid": "uid-1"})),
		entry(1, "create", backendUser, reviewed, about("virtualmachines", machineName+"b"), answered(document{"name": machineName + "b", "uid": "uid-2"}))
	if uid := uidOf(told(t, session, first, launcher)); uid != "uid-1" {
		t.Errorf("of one machine it is that of %q", uid)
	}
	if uid := uidOf(told(t, session, first, second, launcher)); uid != "" {
		t.Errorf("of two machines it is that of %q", uid)
	}
}
