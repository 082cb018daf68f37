package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestAnInstanceIsNotDeletedFromAboveItsPod: virt-controller looks for an instance's Pods by their owner (CurrentVMIPod). Where the
// garbage collector takes that away first, nobody deletes them any more.
func TestAnInstanceIsNotDeletedFromAboveItsPod(t *testing.T) {
	instance := object{"metadata": object{"name": "lab-a0000000", "labels": object{"ttlab.io/session": sessionID, "ttlab.io/env": "prod"}}}
	request := func(user, options string) admission.Request {
		r := remove(user, instance)
		r.Resource.Resource = "virtualmachineinstances"
		r.Options.Raw = []byte(options)
		return r
	}
	denied := []found{{"OrphaningDelete", ""}}
	for name, c := range map[string]struct {
		request admission.Request
		want    []found
	}{
		"its backend orphans":              {request(prodBackend, `{"propagationPolicy":"Orphan"}`), denied},
		"its reaper orphans":               {request(prodReaper, `{"propagationPolicy":"Orphan"}`), denied},
		"an admin orphans":                 {request(admin, `{"orphanDependents":true}`), denied},
		"an unknown user orphans":          {request("bob", `{"propagationPolicy":"Orphan"}`), denied},
		"its backend deletes with its Pod": {request(prodBackend, `{"propagationPolicy":"Background"}`), nil},
		"a trusted controller":             {request(collector, `{"propagationPolicy":"Orphan"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, validate(t, c.request)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
