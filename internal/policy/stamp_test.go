package policy

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/google/go-cmp/cmp"

	"github.com/ttlab/vmwarden/internal/lab"
)

// mutate gives the object as it is after the Mutator's patch, and whether there was one.
func mutate(t *testing.T, request admission.Request) (after object, patched bool) {
	t.Helper()
	mutator := &Mutator{Contract: testContract(), Groups: noGroup{}, Clock: testingclock.NewFakePassiveClock(noon), Log: zap.NewNop()}
	response := mutator.Handle(t.Context(), request)
	if !response.Allowed {
		t.Fatalf("the mutator denied: %+v", response)
	}
	if err := response.Complete(request); err != nil {
		t.Fatal(err)
	}
	raw := request.Object.Raw
	if len(response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("applying %s: %v", response.Patch, err)
		}
	}
	if err := json.Unmarshal(raw, (*map[string]any)(&after)); err != nil {
		t.Fatal(err)
	}
	return after, len(response.Patch) > 0
}

// noGroup is a cluster in which no session has a virtual machine yet.
type noGroup struct{}

func (noGroup) Lead(context.Context, string, string, string) (*metav1.OwnerReference, error) {
	return nil, nil
}

// plain gives the object as JSON decodes it.
func plain(o object) object {
	var decoded map[string]any
	if err := json.Unmarshal(encode(o).Raw, &decoded); err != nil {
		panic(err)
	}
	return decoded
}

func createdBy(user string) func(object) { return annotation(lab.CreatedByAnnotation, user) }

var notDated = drop("metadata", "creationTimestamp")

func TestMutatorStampsWhatIsMissingAndNothingElse(t *testing.T) {
	oddSpec := set(object{"aFieldOfANewerKubeVirt": object{"a/b": []any{1.0, "x"}}}, "spec", "template", "spec", "domain")
	for name, c := range map[string]struct{ sent, want object }{
		"as the backend sends it":    {vm("prod"), stamped("prod", notDated, createdBy(prodBackend))},
		"as the legacy one does":     {vm("", withoutEnvironment), stamped("prod", notDated, createdBy(prodBackend))},
		"an unknown field":           {vm("prod", oddSpec), stamped("prod", notDated, createdBy(prodBackend), oddSpec)},
		"a template without labels":  {vm("prod", drop("spec", "template", "metadata", "labels")), stamped("prod", notDated, createdBy(prodBackend))},
		"a template without any":     {vm("prod", drop("spec", "template", "metadata")), stamped("prod", notDated, createdBy(prodBackend))},
		"a template of null":         {vm("prod", set(nil, "spec", "template", "metadata")), stamped("prod", notDated, createdBy(prodBackend))},
		"null annotations":           {vm("prod", set(nil, "metadata", "annotations")), stamped("prod", notDated, createdBy(prodBackend))},
		"other annotations":          {vm("prod", annotation("a/b~c", "x")), stamped("prod", notDated, createdBy(prodBackend), annotation("a/b~c", "x"))},
		"a forged creator":           {vm("prod", createdBy("somebody else")), stamped("prod", notDated, createdBy(prodBackend))},
		"a wrong label is left":      {vm("dev"), stamped("prod", notDated, createdBy(prodBackend), label("ttlab.io/env", "dev"))},
		"a field that looks like it": {vm("prod", set("x", "metadata", "Labels")), stamped("prod", notDated, createdBy(prodBackend), set("x", "metadata", "Labels"))},
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := mutate(t, create(prodBackend, c.sent))
			if diff := cmp.Diff(plain(c.want), after); diff != "" {
				t.Errorf("after the patch (-want +got):\n%s", diff)
			}
			if _, again := mutate(t, create(prodBackend, after)); again {
				t.Error("the mutator patches its own output")
			}
		})
	}
}

func TestMutatorKeepsAnEarlierDeadlineAndGivesItToTheTemplate(t *testing.T) {
	const earlier = "2026-11-29T12:30:00Z"
	after, _ := mutate(t, create(prodBackend, vm("prod", annotation(lab.DeadlineAnnotation, earlier))))
	want := plain(stamped("prod", notDated, createdBy(prodBackend), annotation(lab.DeadlineAnnotation, earlier),
		set(earlier, "spec", "template", "metadata", "annotations", lab.DeadlineAnnotation)))
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after the patch (-want +got):\n%s", diff)
	}
}

func TestMutatorLeavesAlone(t *testing.T) {
	for name, request := range map[string]admission.Request{
		"an update of an object without label": update(prodBackend, vm("", withoutEnvironment), vm("", withoutEnvironment)),
		"an unknown user's object":             create("bob", vm("prod")),
		"an admin's machine that is no lab's":  create(admin, vm("", drop("metadata", "labels"), drop("spec", "template", "metadata", "labels"))),
	} {
		if _, patched := mutate(t, request); patched {
			t.Errorf("%s was patched", name)
		}
	}
}

func TestMutatorGivesAnAdminsLabMachineADeadlineAndNoEnvironment(t *testing.T) {
	after, _ := mutate(t, create(admin, vm("", withoutEnvironment)))
	want := plain(stamped("", withoutEnvironment, notDated, createdBy(admin), drop("spec", "template", "metadata", "labels", "ttlab.io/env")))
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after the patch (-want +got):\n%s", diff)
	}
}
