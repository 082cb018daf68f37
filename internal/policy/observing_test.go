package policy

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	testingclock "k8s.io/utils/clock/testing"
)

func TestInModeAuditADenialIsAdmittedAndTold(t *testing.T) {
	v := newValidator(roomy())
	v.ReportOnly = true
	response := post(t, v, create(devBackend, stamped("prod")))
	if !response.Allowed || response.Result != nil && response.Result.Code >= 400 {
		t.Fatalf("response = %+v, want it allowed", response)
	}
	if response.AuditAnnotations["decision"] != "would-deny" || response.AuditAnnotations["code"] != "EnvironmentMismatch" {
		t.Errorf("audit annotations = %v", response.AuditAnnotations)
	}
	if len(response.Warnings) == 0 || !strings.Contains(response.Warnings[0], "would deny this: EnvironmentMismatch") {
		t.Errorf("warnings = %q", response.Warnings)
	}
}

func TestInModeAuditWhatWouldBeStampedIsNotReportedAsMissing(t *testing.T) {
	v := newValidator(roomy())
	v.ReportOnly = true
	bare := vm("prod", func(o object) { delete(o.at("metadata", "labels"), "ttlab.io/env") })
	response := post(t, v, create(prodBackend, bare))
	if !response.Allowed || response.AuditAnnotations["decision"] != "allow" {
		t.Errorf("response = %+v, want nothing to report", response)
	}
}

func TestInModeAuditNothingIsStamped(t *testing.T) {
	m := &Mutator{Contract: testContract(), Groups: noGroup{}, Clock: testingclock.NewFakePassiveClock(noon), Log: zap.NewNop(), ReportOnly: true}
	if response := m.Handle(t.Context(), create(prodBackend, vm("prod"))); !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("response = %+v, want no patch", response)
	}
	m.ReportOnly = false
	if response := m.Handle(t.Context(), create(prodBackend, vm("prod"))); len(response.Patches) == 0 {
		t.Error("in mode Enforce there is no patch either")
	}
}
