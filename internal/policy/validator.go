package policy

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// ValidatePath is where the chart has the API server ask a Validator.
const ValidatePath = "/validate"

// Places hands out the namespace's places for virtual machines.
type Places interface {
	Decide(ctx context.Context, claim ledger.Claim) (ledger.Verdict, error)
}

// Surroundings looks up what an object refers to.
type Surroundings interface {
	// Referents gives an entry for each that was wanted; one that does not exist is in it as that.
	Referents(ctx context.Context, namespace string, wanted []Reference) (map[Reference]Referent, error)
}

// Requests finds out what a virtual machine's launcher Pod will request.
type Requests interface {
	OfMachine(ctx context.Context, machine *kubevirtv1.VirtualMachine) (ledger.Need, error)
}

// Validator judges what is asked of lab VMs, and takes a place for each one that is admitted.
type Validator struct {
	Contract lab.Contract
	Places   Places
	// Surroundings are asked for what a new object refers to.
	Surroundings Surroundings
	// Requests is nil where no budget of CPU or memory is set.
	Requests Requests
	// ReportOnly admits everything and reports what would be denied.
	ReportOnly bool
	// AllowWhenUncertain admits a virtual machine where the places cannot be counted.
	AllowWhenUncertain bool
	// Messages are what a requester reads; the log stays English.
	Messages   Messages
	Clock      clock.PassiveClock
	Log        *zap.Logger
	Metrics    *Metrics
	CapMetrics *CapMetrics
	// Events announces denials.
	Events record.EventRecorder
}

// Handle answers a validating review.
func (v *Validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	f, err := v.readFacts(request)
	var decision Decision
	if err != nil {
		decision = unreadable(err)
	} else {
		// All of it together stays below the webhook's own timeoutSeconds: the requester is to read our answer, and not that a
		// webhook did not answer.
		ctx, cancel := context.WithTimeout(ctx, ledger.DecisionTimeout)
		defer cancel()
		decision = v.decide(ctx, f)
	}
	decision.Violations = bounded(decision.Violations)
	decision.ReportOnly = v.ReportOnly
	v.record(f, decision)
	return respond(v.Contract, v.Messages, f, decision)
}

// readFacts gathers the facts; where nothing is stamped since all is only reported, of the object as it would be.
func (v *Validator) readFacts(request admission.Request) (Facts, error) {
	f, err := readFacts(v.Contract.Identities, request, v.Clock.Now())
	if err != nil || !v.ReportOnly {
		return f, err
	}
	if request.Object.Raw, err = asStamped(v.Contract, f); err != nil {
		return f, err
	}
	return readFacts(v.Contract.Identities, request, v.Clock.Now())
}

func (v *Validator) decide(ctx context.Context, f Facts) Decision {
	var decision Decision
	if wanted := newReferences(v.Contract, f); len(wanted) > 0 {
		v.lookAround(ctx, &f, wanted, &decision)
	}
	decision.Violations = append(decision.Violations, judge(v.Contract, f)...)
	if decision.Allowed() && f.Operation == Create && f.Kind == VirtualMachine {
		// Only now: a request that another rule denies takes no place.
		v.claimPlace(ctx, f, &decision)
	}
	if decision.Allowed() {
		decision.Warnings = append(decision.Warnings, warnings(v.Contract, f)...)
	}
	return decision
}

// lookAround looks up what the object refers to. What cannot be looked up cannot be judged, and what cannot be judged is denied.
func (v *Validator) lookAround(ctx context.Context, f *Facts, wanted []Reference, decision *Decision) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := v.Surroundings.Referents(ctx, f.Namespace, wanted)
	if err != nil {
		v.Log.Error("what an object refers to could not be looked up", zap.Error(err), zap.String("namespace", f.Namespace), zap.String("name", f.Name))
		decision.Violations = append(decision.Violations, Violation{
			Code:   Undecided,
			Found:  "what the object refers to could not be looked up",
			Remedy: "try again in a moment; if it stays so, an admin finds the cause in vmwarden's log",
		})
		return
	}
	f.Referents = found
}

func (v *Validator) claimPlace(ctx context.Context, f Facts, decision *Decision) {
	started := v.Clock.Now()
	verdict, err := v.claim(ctx, f)
	v.CapMetrics.observe(v.Clock.Since(started), err)
	if err != nil {
		v.Log.Error("the virtual machines could not be counted", zap.Error(err), zap.String("namespace", f.Namespace),
			zap.String("name", f.Name), zap.Bool("allowed", v.AllowWhenUncertain))
		if v.AllowWhenUncertain {
			decision.Warnings = append(decision.Warnings, "the virtual machines could not be counted; the namespace's quota alone bounds them now")
			return
		}
		violation := capUnknownViolation(f.Namespace, errors.Is(err, context.DeadlineExceeded))
		if own, ok := errors.AsType[*incalculable](err); ok {
			violation = incalculableViolation(f.Name, own.why)
		}
		decision.Violations = append(decision.Violations, violation)
		return
	}
	decision.Places = &verdict
	decision.Violations = append(decision.Violations, capViolations(v.Contract, f, verdict)...)
	if decision.Allowed() {
		decision.Warnings = append(decision.Warnings, lastPlaceWarnings(v.Contract, f, verdict)...)
	}
}

// The log's messages for a denial, by which its lines are found.
const (
	DeniedMessage   = "admission denied"
	ReportedMessage = "admission would be denied"
)

// record writes what an auditor and a dashboard need. The log line's fields are a fixed schema.
func (v *Validator) record(f Facts, decision Decision) {
	environment, session := belongings(v.Contract, f)
	v.Metrics.observeDecision(f, environment, v.Contract, decision)
	if decision.Allowed() {
		return
	}
	v.announce(f, decision)
	what := DeniedMessage
	if decision.ReportOnly {
		what = ReportedMessage
	}
	v.Log.Info(what,
		zap.String("review", string(f.Review)),
		zap.Strings("codes", decision.Codes()),
		zap.String("operation", string(f.Operation)),
		zap.String("kind", string(f.Kind)),
		zap.String("namespace", f.Namespace),
		zap.String("name", f.Name),
		zap.String("uid", string(f.UID)),
		zap.String("environment", environment),
		zap.String("session", session),
		zap.String("requester", f.Requester.Username),
		zap.String("requesterKind", string(f.Requester.Kind)),
		zap.Bool("dryRun", f.DryRun),
		zap.String("message", decision.Message(Violation.Message)),
	)
}

// claim asks for the place of the object under review.
func (v *Validator) claim(ctx context.Context, f Facts) (ledger.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, ledger.DecisionTimeout)
	defer cancel()
	need, err := v.need(ctx, f)
	if err != nil {
		return ledger.Verdict{}, err
	}
	environment, session := belongings(v.Contract, f)
	return v.Places.Decide(ctx, ledger.Claim{
		Name: f.Name, UID: f.UID, DryRun: f.DryRun, Need: need,
		Tenant: ledger.Tenant{Environment: environment, Session: session},
	})
}
