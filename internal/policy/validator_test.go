package policy

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

func TestValidatorAsksForAPlaceOnlyWhereNoRuleDenies(t *testing.T) {
	p := roomy()
	v := newValidator(p)
	v.Handle(t.Context(), create(devBackend, stamped("prod")))
	if p.asked != 0 {
		t.Error("a denied create took a place")
	}
	v.Handle(t.Context(), update(prodBackend, stamped("prod"), stamped("prod")))
	v.Handle(t.Context(), remove(prodBackend, stamped("prod")))
	if p.asked != 0 {
		t.Error("an update or a delete took a place")
	}
	v.Handle(t.Context(), create(prodBackend, stamped("prod")))
	if p.asked != 1 {
		t.Errorf("the create asked for a place %d times, want once", p.asked)
	}
}

func TestValidatorTellsAFullHouseFromOneFullOfReservations(t *testing.T) {
	for code, verdict := range map[string]ledger.Verdict{
		"CapVMs":      {Shortages: []ledger.Shortage{{Scope: ledger.Namespace, Limit: 8, Used: 8, Asked: 1}}},
		"CapReserved": {Shortages: []ledger.Shortage{{Scope: ledger.Namespace, Limit: 8, Used: 6, Reserved: 2, Asked: 1}}},
	} {
		for _, user := range []string{prodBackend, admin, collector} {
			response := newValidator(&places{verdict: verdict}).Handle(t.Context(), create(user, stamped("prod")))
			if diff := cmp.Diff([]found{{code, ""}}, violations(response)); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", code, user, diff)
			}
		}
	}
}

func TestValidatorDeniesWhatItCannotCountUnlessToldToAllow(t *testing.T) {
	request := create(prodBackend, stamped("prod"))
	v := newValidator(&places{err: errors.New("etcd is away")})
	response := v.Handle(t.Context(), request)
	if diff := cmp.Diff([]found{{"CapUnknown", ""}}, violations(response)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if strings.Contains(response.Result.Message, "etcd") {
		t.Errorf("the denial tells the requester of the cluster's insides: %s", response.Result.Message)
	}
	v.AllowWhenUncertain = true
	if response := v.Handle(t.Context(), request); !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("allowed = %t with the warnings %v, want true with one", response.Allowed, response.Warnings)
	}
}

func TestValidatorDeniesWhatItCannotReadAndSaysWhat(t *testing.T) {
	good, odd := encode(stamped("prod")), runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"ttlab.io/env":7}}}`)}
	for name, request := range map[string]struct {
		operation   admissionv1.Operation
		old, new    runtime.RawExtension
		wantMention string
	}{
		"a label that is a number": {"CREATE", runtime.RawExtension{}, odd, "object"},
		"an old label like that":   {"UPDATE", odd, good, "oldObject"},
		"a create without object":  {"CREATE", good, runtime.RawExtension{}, "no object"},
		"a delete without object":  {"DELETE", runtime.RawExtension{}, runtime.RawExtension{}, "no oldObject"},
		"no JSON at all":           {"CREATE", runtime.RawExtension{}, runtime.RawExtension{Raw: []byte("\x00")}, "object"},
		"an operation of its own":  {"CONNECT", good, good, "CONNECT"},
	} {
		t.Run(name, func(t *testing.T) {
			full := create(prodBackend, nil)
			full.Operation, full.OldObject, full.Object = request.operation, request.old, request.new
			response := newValidator(roomy()).Handle(t.Context(), full)
			if diff := cmp.Diff([]found{{"ObjectUnreadable", ""}}, violations(response)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if response.Result == nil || !strings.Contains(response.Result.Message, request.wantMention) {
				t.Errorf("the denial does not mention %q: %+v", request.wantMention, response.Result)
			}
		})
	}
}

func TestADenialIsOfBoundedLengthAndNamesEveryCode(t *testing.T) {
	var volumes []any
	for range 1000 {
		volumes = append(volumes, map[string]any{"name": "c", "cloudInitNoCloud": map[string]any{"userData": "x"}})
	}
	request := create(devBackend, stamped("prod", annotation(lab.DeadlineAnnotation, strings.Repeat("日", 80_000)), set(volumes, "spec", "template", "spec", "volumes")))
	core, lines := observer.New(zap.InfoLevel)
	v := newValidator(roomy())
	v.Log = zap.New(core)
	response := v.Handle(t.Context(), request)
	told := response.Result.Message
	if len(told) > 20_000 || !utf8.ValidString(told) || len(response.Result.Details.Causes) > 50 {
		t.Errorf("%d bytes, %d causes: %.2000s", len(told), len(response.Result.Details.Causes), told)
	}
	for _, want := range []string{"EnvironmentMismatch", "DeadlineTooLate", "CloudInitInline", "980 more of the kind"} {
		if !strings.Contains(told, want) {
			t.Errorf("%s is not told", want)
		}
	}
	if logged := lines.FilterMessage(DeniedMessage).All(); len(logged) != 1 || len(logged[0].ContextMap()["message"].(string)) > 20_000 {
		t.Errorf("the log has %d lines of it, or one that is too long", len(logged))
	}
}

// What is stored may be from before us.
func TestAMachineWithATemplateThatCannotBeReadIsMendedAndDeletedAndNoNewOneComes(t *testing.T) {
	odd := set("none", "spec", "template", "metadata", "labels")
	stored, foreign := stamped("prod", odd), []found{{"EnvironmentForeign", "metadata.labels[ttlab.io/env]"}}
	unreadable := []found{{"ObjectUnreadable", ""}}
	for name, c := range map[string]struct {
		request admission.Request
		want    []found
	}{
		"an admin deletes it":                      {remove("root", stored), nil},
		"another environment's backend deletes it": {remove(devBackend, stored), foreign},
		"it is mended":                             {update(prodBackend, stored, stamped("prod")), nil},
		"it is changed and not mended":             {update(prodBackend, stored, stamped("prod", odd, annotation("a", "b"))), unreadable},
		"a good one is spoilt":                     {update(prodBackend, stamped("prod"), stored), unreadable},
		"it goes, and loses a finalizer":           {update(prodBackend, stamped("prod", odd, terminating), stamped("prod", odd, terminating, drop("metadata", "finalizers"))), nil},
		"a new one":                                {create(prodBackend, stored), unreadable},
	} {
		if c.request.UserInfo.Username == "root" {
			c.request.UserInfo.Groups = []string{"system:masters"}
		}
		if diff := cmp.Diff(c.want, validate(t, c.request)); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", name, diff)
		}
	}
}

func TestADeletecollectionIsJudgedByTheNameInTheOldObject(t *testing.T) {
	request := remove(devBackend, stamped("prod"))
	request.Name = ""
	response := newValidator(roomy()).Handle(t.Context(), request)
	if response.Allowed || response.Result.Details.Name != "lab-a0000000" {
		t.Errorf("response = %+v, want a denial that names lab-a0000000", response)
	}
}

func TestADenialIsA403WithAuditAnnotations(t *testing.T) {
	response := newValidator(roomy()).Handle(t.Context(), create(devBackend, stamped("prod")))
	if response.Result.Code != http.StatusForbidden {
		t.Errorf("code = %d, want 403", response.Result.Code)
	}
	want := map[string]string{
		"decision": "deny", "code": "EnvironmentMismatch", "environment": "prod", "session": sessionID, "requester-kind": "Backend", "review": "1",
	}
	if diff := cmp.Diff(want, response.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

func TestOnlyADenialNamesItsReviewAndItsLogLineTheSame(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	v := newValidator(roomy())
	v.Log = zap.New(core)
	if response := v.Handle(t.Context(), create(prodBackend, stamped("prod"))); response.AuditAnnotations["review"] != "" {
		t.Errorf("an allowed request is annotated with %v", response.AuditAnnotations)
	}
	response := v.Handle(t.Context(), create(devBackend, stamped("prod")))
	logged := lines.FilterMessage(DeniedMessage).All()
	if len(logged) != 1 || logged[0].ContextMap()["review"] != response.AuditAnnotations["review"] || response.AuditAnnotations["review"] != "1" {
		t.Errorf("the audit log has %v, our own %v", response.AuditAnnotations, logged)
	}
}

func TestOnlyADryRunIsAnnotatedAsOne(t *testing.T) {
	request := remove(devBackend, stamped("prod"))
	if annotations := newValidator(roomy()).Handle(t.Context(), request).AuditAnnotations; annotations["dry-run"] != "" {
		t.Errorf("a real request: %v", annotations)
	}
	request.DryRun = new(true)
	if annotations := newValidator(roomy()).Handle(t.Context(), request).AuditAnnotations; annotations["dry-run"] != "true" {
		t.Errorf("a dry run: %v", annotations)
	}
}

func TestTouchingAMachineWithoutEnvironmentWarns(t *testing.T) {
	response := newValidator(roomy()).Handle(t.Context(), remove(prodBackend, stamped("", withoutEnvironment)))
	if !response.Allowed || len(response.Warnings) != 1 {
		t.Errorf("allowed = %t with the warnings %v, want true with one", response.Allowed, response.Warnings)
	}
}
