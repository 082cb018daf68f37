package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

func TestEveryLimitHasItsCodeAndItsField(t *testing.T) {
	for scope, want := range map[ledger.Scope]found{
		ledger.Namespace:   {"CapVMs", ""},
		ledger.Environment: {"CapEnvironment", "metadata.labels[ttlab.io/env]"},
		ledger.Session:     {"CapSession", "metadata.labels[ttlab.io/session]"},
		ledger.CPU:         {"CapCPU", "spec.template.spec.domain"},
		ledger.Memory:      {"CapMemory", "spec.template.spec.domain"},
	} {
		for _, reserved := range []int64{0, 1} {
			if reserved > 0 {
				want.Code = "CapReserved"
			}
			p := &places{verdict: ledger.Verdict{Shortages: []ledger.Shortage{{Scope: scope, Limit: 2, Used: 2 - reserved, Reserved: reserved, Asked: 1}}}}
			response := newValidator(p).Handle(t.Context(), create(prodBackend, stamped("prod")))
			if diff := cmp.Diff([]found{want}, violations(response)); diff != "" {
				t.Errorf("%s with %d reserved (-want +got):\n%s", scope, reserved, diff)
			}
		}
	}
}

func TestADenialNamesEveryLimitThatWouldBePassed(t *testing.T) {
	p := &places{verdict: ledger.Verdict{Shortages: []ledger.Shortage{
		{Scope: ledger.Session, Limit: 3, Used: 3, Asked: 1}, {Scope: ledger.Memory, Limit: 5, Used: 4, Asked: 2},
	}}}
	response := newValidator(p).Handle(t.Context(), create(prodBackend, stamped("prod")))
	want := []found{{"CapSession", "metadata.labels[ttlab.io/session]"}, {"CapMemory", "spec.template.spec.domain"}}
	if diff := cmp.Diff(want, violations(response)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func full(deadline time.Time) ledger.Verdict {
	return ledger.Verdict{
		Shortages: []ledger.Shortage{{Scope: ledger.Namespace, Limit: 2, Used: 2, Asked: 1, NextDeadline: deadline}},
		Tally: ledger.Tally{
			Total:        ledger.Share{Used: 2},
			Environments: map[string]ledger.Share{"prod": {Used: 1}, "somebody's": {Used: 1}},
			Sessions:     map[ledger.Tenant]ledger.Share{{Environment: "prod", Session: otherSession}: {Used: 1}},
		},
	}
}

func TestOnlyTheOwnEnvironmentsSessionsAreNamed(t *testing.T) {
	for user, environment := range map[string]string{prodBackend: "prod", devBackend: "dev", admin: "dev"} {
		response := newValidator(&places{verdict: full(noon)}).Handle(t.Context(), create(user, stamped(environment)))
		if response.Result == nil {
			t.Fatalf("%s: admitted", user)
		}
		message := response.Result.Message
		if got, want := strings.Contains(message, otherSession), user == prodBackend; got != want {
			t.Errorf("%s is told of prod's session: %t, want %t: %s", user, got, want, message)
		}
		if !strings.Contains(message, "prod holds 1") || !strings.Contains(message, elsewhere+" holds 1") || strings.Contains(message, "somebody's") {
			t.Errorf("%s is not told who holds the places: %s", user, message)
		}
	}
}

func TestADenialTellsWhenThePlaceIsDueAtTheLatest(t *testing.T) {
	for deadline, want := range map[time.Time]string{
		noon.Add(90 * time.Minute): "the next deadline is 2026-11-29T13:30:00Z, in 1h30m0s",
		noon.Add(-time.Minute):     "past its deadline",
		{}:                         "try again when a session has ended",
	} {
		response := newValidator(&places{verdict: full(deadline)}).Handle(t.Context(), create(prodBackend, stamped("prod")))
		if response.Result == nil || !strings.Contains(response.Result.Message, want) {
			t.Errorf("with the deadline %s the denial does not contain %q: %+v", deadline, want, response.Result)
		}
	}
}

func TestWhatCanNeverFitIsToldSo(t *testing.T) {
	p := &places{verdict: ledger.Verdict{Shortages: []ledger.Shortage{{Scope: ledger.CPU, Limit: 16000, Asked: 17000}}}}
	response := newValidator(p).Handle(t.Context(), create(prodBackend, stamped("prod")))
	if response.Result == nil || !strings.Contains(response.Result.Message, "ask for less") || !strings.Contains(response.Result.Message, "17.000") {
		t.Errorf("response = %+v, want a denial that tells what is asked and to ask for less", response.Result)
	}
}

func TestTheLastPlaceIsWarnedOf(t *testing.T) {
	p := &places{verdict: ledger.Verdict{Granted: true, Last: []ledger.Scope{ledger.Namespace, ledger.Environment}}}
	response := newValidator(p).Handle(t.Context(), create(prodBackend, stamped("prod")))
	if !response.Allowed || len(response.Warnings) != 2 {
		t.Errorf("allowed: %t, warnings = %q, want one for the namespace and one for the environment", response.Allowed, response.Warnings)
	}
}

// requests is a calculation that always comes out the same.
type requests struct {
	need ledger.Need
	err  error
}

func (r requests) OfMachine(context.Context, *kubevirtv1.VirtualMachine) (ledger.Need, error) {
	return r.need, r.err
}

func TestTheClaimTellsWhoseTheMachineIsAndWhatItNeeds(t *testing.T) {
	p := roomy()
	v := newValidator(p)
	v.Requests = requests{need: ledger.Need{MilliCPU: 2006, Memory: 7}}
	v.Handle(t.Context(), create(prodBackend, stamped("prod")))
	want := ledger.Claim{
		Name: "lab-a0000000", Tenant: ledger.Tenant{Environment: "prod", Session: sessionID}, Need: ledger.Need{MilliCPU: 2006, Memory: 7},
	}
	if diff := cmp.Diff(want, p.claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeCalculatedIsUncertain(t *testing.T) {
	v := newValidator(roomy())
	v.Requests = requests{err: errors.New("instance type large is not found")}
	response := v.Handle(t.Context(), create(prodBackend, stamped("prod")))
	if diff := cmp.Diff([]found{{"CapUnknown", ""}}, violations(response)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	v.AllowWhenUncertain = true
	if !v.Handle(t.Context(), create(prodBackend, stamped("prod"))).Allowed {
		t.Error("denied under Allow")
	}
}

func TestADenialForWantOfTimeSaysSo(t *testing.T) {
	v := newValidator(&places{err: fmt.Errorf("listing: %w", context.DeadlineExceeded)})
	response := v.Handle(t.Context(), create(prodBackend, stamped("prod")))
	if response.Result == nil || !strings.Contains(response.Result.Message, "within 8s") {
		t.Errorf("response = %+v, want a denial that says that the time was up", response.Result)
	}
}
