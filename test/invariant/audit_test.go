package invariant

import (
	"strings"
	"testing"
)

const (
	createLine = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"1","stage":"ResponseComplete","requestURI":"/apis/kubevirt.io/v1/namespaces/lab-vms/virtualmachines?fieldManager=x","verb":"create","user":{"username":"system:serviceaccount:ttlab-prod:backend","groups":["system:serviceaccounts"]},"objectRef":{"resource":"virtualmachines","namespace":"lab-vms"},"responseStatus":{"code":201},"requestObject":{"kind":"VirtualMachine"},"responseObject":{"kind":"VirtualMachine","metadata":{"name":"lab-a","uid":"u","labels":{"ttlab.io/env":"prod"},"annotations":{"vmwarden.io/created-by":"b"}},"spec":{"template":{"metadata":{"labels":{"ttlab.io/session":"s"}}}}},"requestReceivedTimestamp":"2026-09-12T12:00:00.000001Z","stageTimestamp":"2026-09-12T12:00:00.020000Z","annotations":{"validate.vmwarden.io/decision":"allow","validate.vmwarden.io/session":"s"}}`
	deleteLine = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"2","stage":"ResponseComplete","requestURI":"/x","verb":"delete","user":{"username":"admin"},"impersonatedUser":{"username":"system:serviceaccount:ttlab-prod:reaper"},"objectRef":{"resource":"virtualmachines","namespace":"lab-vms","name":"lab-a"},"responseStatus":{"code":200},"requestObject":{"kind":"DeleteOptions","preconditions":{"uid":"u"},"propagationPolicy":"Background"},"responseObject":{"kind":"Status","details":{"uid":"u"}},"requestReceivedTimestamp":"2026-09-12T12:00:01Z","stageTimestamp":"2026-09-12T12:00:01.5Z"}`
	dryLine    = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"3","stage":"ResponseComplete","requestURI":"/x","verb":"delete","objectRef":{"resource":"virtualmachines","name":"lab-a"},"responseStatus":{"code":200},"requestObject":{"dryRun":["All"]},"requestReceivedTimestamp":"2026-09-12T12:00:02Z","stageTimestamp":"2026-09-12T12:00:02Z"}`
	listLine   = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"5","stage":"ResponseComplete","requestURI":"/x","verb":"list","objectRef":{"resource":"virtualmachines"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-09-12T12:00:03Z","stageTimestamp":"2026-09-12T12:00:03Z"}`
	panicLine  = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"4","stage":"Panic","requestURI":"/x","verb":"delete","objectRef":{"resource":"virtualmachines","name":"lab-a"},"responseStatus":{"code":500},"requestReceivedTimestamp":"2026-09-12T12:00:03Z","stageTimestamp":"2026-09-12T12:00:03Z"}`
)

func TestAnAuditLogIsReadForWhatTookEffect(t *testing.T) {
	writes, err := ReadAudit(strings.NewReader(strings.Join([]string{deleteLine, createLine, listLine, dryLine, panicLine}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != 4 {
		t.Fatalf("%d writes, want 4", len(writes))
	}
	create, removal, dry, panicked := writes[0], writes[1], writes[2], writes[3]
	if !create.succeeded() || create.Name != "lab-a" || create.Object.UID != "u" || create.Object.Labels["ttlab.io/env"] != "prod" ||
		create.Object.TemplateLabels["ttlab.io/session"] != "s" || create.Session != "s" || create.Denied {
		t.Errorf("the create is read as %+v", create)
	}
	if removal.Username != "system:serviceaccount:ttlab-prod:reaper" || removal.Precondition != "u" || !removal.BodyKnown || removal.Orphans || removal.Object != nil {
		t.Errorf("the delete is read as %+v", removal)
	}
	if dry.succeeded() || dry.mayHaveSucceeded() {
		t.Error("a dry run is taken in earnest")
	}
	if panicked.succeeded() || !panicked.mayHaveSucceeded() {
		t.Errorf("nobody knows what a panic did, and it is read as %+v", panicked)
	}
}

func TestAJSONPatchIsAChange(t *testing.T) {
	patchLine := strings.NewReplacer(`"verb":"create"`, `"verb":"patch"`, `"requestObject":{"kind":"VirtualMachine"}`, `"requestObject":[{"op":"remove","path":"/x"}]`,
		`"code":201`, `"code":200`).Replace(createLine)
	writes, err := ReadAudit(strings.NewReader(patchLine))
	if err != nil || len(writes) != 1 || !writes[0].changes() || !writes[0].succeeded() {
		t.Errorf("the patch is read as %+v, %v", writes, err)
	}
}

func TestOnlyADryRunIsTakenForOne(t *testing.T) {
	for uri, want := range map[string]bool{"/x?dryRun=All": true, "/x?a=b&dryRun=%41ll": true, "/x?fieldManager=dryRun=All": false, "/x?labelSelector=dryRun%3D": false} {
		writes, err := ReadAudit(strings.NewReader(strings.Replace(deleteLine, `"requestURI":"/x"`, `"requestURI":"`+uri+`"`, 1)))
		if err != nil || len(writes) != 1 || writes[0].DryRun != want {
			t.Errorf("%s: read as %+v, %v", uri, writes, err)
		}
	}
}

func TestALineThatAnAPIServerWasKilledOverIsPassedBy(t *testing.T) {
	for what, log := range map[string]string{
		"and the next began on it": createLine[:200] + deleteLine + "\n" + createLine,
		"and it was the last":      deleteLine + "\n" + createLine + "\n" + deleteLine[:100],
	} {
		writes, err := ReadAudit(strings.NewReader(log))
		if err != nil || len(writes) != 2 {
			t.Errorf("%s: %d writes, %v; want 2", what, len(writes), err)
		}
	}
}

func TestABrokenLineIsAnError(t *testing.T) {
	_, err := ReadAudit(strings.NewReader(createLine + "\n{\n" + deleteLine))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("err = %v, want one that names line 2", err)
	}
}
