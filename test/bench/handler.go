package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"time"

	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/inventory"
	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/lab"
)

// pair is a mutating and a validating handler.
type pair struct {
	mutating, validating http.Handler
}

// idlePair answers everything with yes.
func idlePair() pair {
	yes := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })}
	return pair{yes, yes}
}

// openHouse stands in for the API server where the handlers alone are measured: there is always a place, and what an object refers
// to is found, and nobody's.
type openHouse struct{}

func (openHouse) Decide(context.Context, ledger.Claim) (ledger.Verdict, error) {
	return ledger.Verdict{Granted: true, Tally: ledger.Tally{Limits: ledger.Limits{VMs: 8}}}, nil
}

func (openHouse) Referents(_ context.Context, _ string, wanted []policy.Reference) (map[policy.Reference]policy.Referent, error) {
	found := make(map[policy.Reference]policy.Referent, len(wanted))
	for _, reference := range wanted {
		found[reference] = policy.Referent{Exists: true, UID: "4f0f4e3c-6d0a-4a39-8f0e-0c0ffee00003"}
		if reference.Kind == policy.PersistentVolumeClaim {
			found[reference] = policy.Referent{Exists: true, Labels: map[string]string{"ttlab.io/golden": "true"}}
		}
	}
	return found, nil
}

func (openHouse) Lead(context.Context, string, string, string) (*metav1.OwnerReference, error) {
	return nil, nil
}

// rulesPair are our handlers with everything that they do without the API server. Budgets are on, so what a launcher requests is
// calculated.
func rulesPair(log *zap.Logger) (pair, error) {
	configuration, err := config.Parse([]byte(lab.Config))
	if err != nil {
		return pair{}, fmt.Errorf("reading the lab's configuration: %w", err)
	}
	contract := configuration.Contract()
	requests := &inventory.Requests{Cluster: launcher.Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100, AdditionalOverheadRatio: 1}}
	return handlers(&policy.Mutator{Contract: contract, Groups: openHouse{}, Clock: clock.RealClock{}, Log: log}, &policy.Validator{
		Contract: contract, Places: openHouse{}, Surroundings: openHouse{}, Requests: requests, Clock: clock.RealClock{}, Log: log,
		Metrics: policy.NewMetrics(prometheus.NewRegistry()), CapMetrics: policy.NewCapMetrics(contract, prometheus.NewRegistry()),
		Events: record.NewFakeRecorder(1),
	}), nil
}

func handlers(mutator *policy.Mutator, validator *policy.Validator) pair {
	return pair{&admission.Webhook{Handler: mutator}, &admission.Webhook{Handler: validator}}
}

// reviews are those of one creation: the mutating one, and the validating one of the object as it comes out of the first.
type reviews struct {
	mutating, validating []byte
}

// reviewsOf asks the rules what they make of the mutating review, and fails where they do not admit the virtual machine: a denial
// would be another thing to measure.
func reviewsOf(ctx context.Context, rules pair) (reviews, error) {
	mutating, err := reviewOf(func(*unstructured.Unstructured) {})
	if err != nil {
		return reviews{}, err
	}
	answer, err := responseTo(ctx, rules.mutating, mutating)
	if err != nil {
		return reviews{}, err
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		return reviews{}, fmt.Errorf("reading the mutator's patch: %w", err)
	}
	var patchErr error
	validating, err := reviewOf(func(machine *unstructured.Unstructured) {
		machine.SetUID("4f0f4e3c-6d0a-4a39-8f0e-0c0ffee00004")
		patchErr = apply(patch, machine)
	})
	if err := errors.Join(err, patchErr); err != nil {
		return reviews{}, fmt.Errorf("stamping the virtual machine: %w", err)
	}
	if answer, err = responseTo(ctx, rules.validating, validating); err != nil {
		return reviews{}, err
	}
	if !answer.Allowed {
		return reviews{}, fmt.Errorf("the virtual machine is denied: %s", answer.Result.Message)
	}
	return reviews{mutating, validating}, nil
}

func apply(patch jsonpatch.Patch, machine *unstructured.Unstructured) error {
	content, err := machine.MarshalJSON()
	if err != nil {
		return err
	}
	if content, err = patch.Apply(content); err != nil {
		return err
	}
	return machine.UnmarshalJSON(content)
}

func responseTo(ctx context.Context, handler http.Handler, body []byte) (*admissionv1.AdmissionResponse, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(ask(ctx, handler, body), &review); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return review.Response, nil
}

// ask sends a review through a handler, bytes in and bytes out, with no network in between.
func ask(ctx context.Context, handler http.Handler, body []byte) []byte {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Body.Bytes()
}

// askBoth sends both reviews of a creation through a pair.
func (r reviews) askBoth(ctx context.Context, p pair) {
	ask(ctx, p.mutating, r.mutating)
	ask(ctx, p.validating, r.validating)
}

// askingsARound is how many creations one measurement of a pair is made of: some milliseconds, far above what a clock can tell apart.
const askingsARound = 50

// timeOf measures one creation's two reviews.
func (r reviews) timeOf(ctx context.Context, p pair) time.Duration {
	started := time.Now()
	for range askingsARound {
		r.askBoth(ctx, p)
	}
	return time.Since(started) / askingsARound
}

// measureHandlers compares our handlers with handlers that do nothing, on the same bytes.
func measureHandlers(ctx context.Context, s sizes, r *report) error {
	log := zap.NewNop()
	ctrllog.SetLogger(zapr.NewLogger(log))
	rules, err := rulesPair(log)
	if err != nil {
		return err
	}
	both, err := reviewsOf(ctx, rules)
	if err != nil {
		return err
	}
	// As in a replica, whose heap is large beside what one review leaves behind: with the few megabytes of this program alive, the
	// collector would run many times as often.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	pairs := []pair{idlePair(), rules}
	took, err := inTurns(s.handlerRounds, len(pairs), func(variant, _ int) (time.Duration, error) { return both.timeOf(ctx, pairs[variant]), nil })
	if err != nil {
		return err
	}
	r.note("handlers that do nothing, both reviews of a creation", "%d µs", took[0].median().Microseconds())
	r.note("our handlers, the same", "%d µs", took[1].median().Microseconds())
	r.atMost("our handlers / handlers that do nothing", took[1].over(took[0]), 1.3, "")
	return nil
}
