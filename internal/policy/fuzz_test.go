package policy

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"go.uber.org/zap"
)

// FuzzHandlers sends reviews of any content through both handlers. Whatever comes: an answer, no panic; a denial says why; a patch
// applies, and the patched object needs no other.
func FuzzHandlers(f *testing.F) {
	for _, content := range fixtures(f) {
		f.Add("virtualmachines", "CREATE", prodBackend, content, []byte(nil))
	}
	whole := func(o object) []byte { return encode(o).Raw }
	f.Add("virtualmachines", "CREATE", devBackend, whole(vm("prod")), []byte(nil))
	f.Add("virtualmachines", "UPDATE", prodReaper, whole(stamped("dev")), whole(stamped("prod", terminating)))
	f.Add("virtualmachines", "DELETE", admin, []byte(nil), whole(vm("", drop("metadata", "labels"))))
	f.Add("pods", "CREATE", collector, []byte(`{"metadata":{"labels":{"kubevirt.io":"virt-launcher"},"annotations":{"vmwarden.io/deadline":"2026-11-29T13:00:00Z"}},"spec":{}}`), []byte(nil))
	f.Add("secrets", "CREATE", prodBackend, []byte(`{"metadata":{"labels":null,"ownerReferences":[{"kind":"VirtualMachine","apiVersion":"kubevirt.io/v1"}]}}`), []byte(nil))
	f.Add("persistentvolumeclaims", "UPDATE", "alice", []byte(`{}`), []byte(`{"metadata":{"labels":{"ttlab.io/golden":"true"}}}`))
	mutator := &Mutator{Contract: testContract(), Groups: noGroup{}, Clock: testingclock.NewFakePassiveClock(noon), Log: zap.NewNop()}
	f.Fuzz(func(t *testing.T, resource, operation, user string, object, oldObject []byte) {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Operation(operation), Namespace: "lab-vms",
			Resource: metav1.GroupVersionResource{Resource: resource},
			Object:   runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: oldObject},
		}}
		request.UserInfo.Username = user
		response := newValidator(roomy()).Handle(t.Context(), request)
		if response.Allowed == (response.Result != nil) || (!response.Allowed && len(response.Result.Details.Causes) == 0) {
			t.Errorf("allowed = %t with the result %+v", response.Allowed, response.Result)
		}
		mutated := mutator.Handle(t.Context(), request)
		if err := mutated.Complete(request); err != nil {
			t.Fatal(err)
		}
		if len(mutated.Patch) == 0 {
			return
		}
		patch, err := jsonpatch.DecodePatch(mutated.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if request.Object.Raw, err = patch.Apply(object); err != nil {
			t.Fatalf("%s does not apply to %s: %v", mutated.Patch, object, err)
		}
		if !json.Valid(request.Object.Raw) {
			t.Errorf("the patched object is no JSON: %s", request.Object.Raw)
		}
		again := mutator.Handle(t.Context(), request)
		if len(again.Patches) > 0 {
			t.Errorf("its own output is patched again: %+v", again.Patches)
		}
	})
}
