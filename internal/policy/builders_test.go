package policy

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

const (
	sessionID    = "a0000000-0000-4000-8000-000000000001"
	otherSession = "a1000000-0000-4000-8000-000000000002"

	prodBackend = "system:serviceaccount:ttlab-prod:backend"
	devBackend  = "system:serviceaccount:ttlab-dev:backend"
	prodReaper  = "system:serviceaccount:ttlab-prod:reaper"
	collector   = "system:serviceaccount:kube-system:generic-garbage-collector"
	admin       = "alice"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// noonsDeadline is what is stamped at noon.
const noonsDeadline = "2026-11-29T15:15:00Z"

func testContract() lab.Contract {
	identities := lab.NewIdentities([]string{admin}, []string{"system:masters"})
	identities.Add(lab.ServiceAccount{Namespace: "ttlab-prod", Name: "backend"}, lab.Backend, "prod")
	identities.Add(lab.ServiceAccount{Namespace: "ttlab-prod", Name: "reaper"}, lab.Reaper, "prod")
	identities.Add(lab.ServiceAccount{Namespace: "ttlab-dev", Name: "backend"}, lab.Backend, "dev")
	identities.Add(lab.ServiceAccount{Namespace: "kube-system", Name: "generic-garbage-collector"}, lab.TrustedController, "")
	return lab.Contract{
		VMNamespace:  "lab-vms",
		Labels:       lab.Labels{Lab: "ttlab.io/lab", LabValue: "true", Session: "ttlab.io/session", Environment: "ttlab.io/env", Golden: "ttlab.io/golden"},
		SessionIDs:   lab.SessionIDUUID,
		Lifetimes:    lab.Lifetimes{Ceiling: 180 * time.Minute, DeadlineGrace: 15 * time.Minute},
		Environments: []string{"prod", "dev"},
		Identities:   identities,
	}
}

// object is a virtual machine as JSON.
type object map[string]any

// vm is what the backend sends for a session, with the environment label as given; change edits it.
func vm(environment string, changes ...func(object)) object {
	o := object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": object{
			"name": "lab-a0000000", "namespace": "lab-vms",
			"labels": object{"ttlab.io/lab": "true", "ttlab.io/session": sessionID, "ttlab.io/env": environment},
		},
		"spec": object{"runStrategy": "Always", "template": object{
			"metadata": object{"labels": object{"ttlab.io/lab": "true", "ttlab.io/session": sessionID}},
			"spec":     object{"domain": object{}},
		}},
	}
	for _, change := range changes {
		change(o)
	}
	return o
}

func (o object) at(path ...string) object {
	for _, key := range path {
		next, found := o[key].(object)
		if !found {
			next = object{}
			o[key] = next
		}
		o = next
	}
	return o
}

func set(value any, path ...string) func(object) {
	return func(o object) { o.at(path[:len(path)-1]...)[path[len(path)-1]] = value }
}

func drop(path ...string) func(object) {
	return func(o object) { delete(o.at(path[:len(path)-1]...), path[len(path)-1]) }
}

func label(key, value string) func(object)      { return set(value, "metadata", "labels", key) }
func annotation(key, value string) func(object) { return set(value, "metadata", "annotations", key) }

var (
	withoutEnvironment = drop("metadata", "labels", "ttlab.io/env")
	terminating        = set("2026-11-29T11:59:00Z", "metadata", "deletionTimestamp")
)

// review is a request, as kube-apiserver sends it.
func review(operation admissionv1.Operation, user string, old, new object) admission.Request {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Namespace: "lab-vms", Name: "lab-a0000000",
		Resource: metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		UserInfo: authenticationv1.UserInfo{Username: user},
	}}
	if old != nil {
		request.OldObject = encode(old)
	}
	if new != nil {
		request.Object = encode(new)
	}
	return request
}

func encode(o object) runtime.RawExtension {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}

func create(user string, new object) admission.Request {
	return review(admissionv1.Create, user, nil, new)
}
func update(user string, old, new object) admission.Request {
	return review(admissionv1.Update, user, old, new)
}
func remove(user string, old object) admission.Request {
	return review(admissionv1.Delete, user, old, nil)
}

// places is a ledger that always answers the same.
type places struct {
	verdict ledger.Verdict
	err     error
	asked   int
	claim   ledger.Claim
}

func (p *places) Decide(_ context.Context, claim ledger.Claim) (ledger.Verdict, error) {
	p.asked++
	p.claim = claim
	return p.verdict, p.err
}

// around is a cluster in which these objects exist.
type around map[Reference]Referent

func (a around) Referents(_ context.Context, _ string, wanted []Reference) (map[Reference]Referent, error) {
	found := map[Reference]Referent{}
	for _, reference := range wanted {
		found[reference] = a[reference]
	}
	return found, nil
}

func roomy() *places { return &places{verdict: ledger.Verdict{Granted: true}} }

func newValidator(p *places) *Validator {
	return &Validator{
		Contract: testContract(), Places: p, Surroundings: around{}, Clock: testingclock.NewFakePassiveClock(noon),
		Log: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()), Events: &record.FakeRecorder{},
		CapMetrics: NewCapMetrics(testContract(), prometheus.NewRegistry()),
	}
}

// found is a violation's code and field, which tests compare; the prose may change.
type found struct{ Code, Field string }

func violations(response admission.Response) []found {
	var list []found
	if response.Result != nil && response.Result.Details != nil {
		for _, cause := range response.Result.Details.Causes {
			list = append(list, found{string(cause.Type), cause.Field})
		}
	}
	return list
}

func validate(t *testing.T, request admission.Request) []found {
	t.Helper()
	response := newValidator(roomy()).Handle(t.Context(), request)
	list := violations(response)
	if response.Allowed != (len(list) == 0) {
		t.Errorf("allowed = %t with the causes %v", response.Allowed, list)
	}
	return list
}
