package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	testlab "github.com/ttlab/vmwarden/test/lab"
)

// observing is the lab's configuration in mode Audit.
var observing = strings.Replace(testlab.Config, "\nvmNamespace:", "\nmode: Audit\nvmNamespace:", 1)

func TestInModeAuditNothingIsPreventedOrChangedAndAllOfItIsTold(t *testing.T) {
	clean(t)
	reconfigure(t, observing)
	prod, warnings := warned(t.Context(), t, "prod")
	claim := backend.Lesson{Session: sessionID('A', 7), Environment: "dev"}
	created, err := prod.Create(t.Context(), backend.VMContainerDisk, claim)
	if err != nil {
		t.Fatalf("a false claim was refused: %v", err)
	}
	if annotations := created[0].GetAnnotations(); annotations[lab.DeadlineAnnotation] != "" || annotations[lab.CreatedByAnnotation] != "" {
		t.Errorf("it was stamped: %v", annotations)
	}
	if !warnings.contain("it would deny this: EnvironmentMismatch") {
		t.Error("the requester was not warned")
	}
	told := auditOf(t, "create", claim.VMName())
	if told.Annotations["validate.vmwarden.io/decision"] != "would-deny" || told.Annotations["validate.vmwarden.io/code"] != "EnvironmentMismatch" || told.ResponseStatus.Code != 201 {
		t.Errorf("the audit log tells %+v", told)
	}
	bare := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('A', 8)})
	labels := bare.GetLabels()
	delete(labels, "ttlab.io/env")
	bare.SetLabels(labels)
	bare.SetName("lab-bare")
	if _, err := prod.CreateObject(t.Context(), bare, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if told := auditOf(t, "create", "lab-bare"); told.Annotations["validate.vmwarden.io/decision"] != "allow" {
		t.Errorf("what would only be stamped is told as %+v", told.Annotations)
	}
}

func TestInModeAuditAPassOnlySaysWhatItWouldDo(t *testing.T) {
	clean(t)
	open(t, "prod", sessionID('A', 9))
	insert(t, "prod", expired(sessionID('A', 9)))
	run, err := shared.Reapjob(t.Context(), "prod", observing, "run")
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, run, 0)
	if !strings.Contains(run.Stdout, "expired") || !strings.Contains(run.Stderr, "mode is Audit") {
		t.Errorf("it says\n%s\n%s", run.Stdout, run.Stderr)
	}
	if names := machineNames(t); len(names) != 1 {
		t.Errorf("machines = %v, want the one that was there", names)
	}
	expectStatus(t, "prod", sessionID('A', 9), "running")
}
