package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/ttlab/vmwarden/internal/lab"
)

const (
	environmentField         = "metadata.labels[ttlab.io/env]"
	sessionField             = "metadata.labels[ttlab.io/session]"
	deadlineField            = "metadata.annotations[vmwarden.io/deadline]"
	templateEnvironmentField = "spec.template.metadata.labels[ttlab.io/env]"
	templateSessionField     = "spec.template.metadata.labels[ttlab.io/session]"
	templateDeadlineField    = "spec.template.metadata.annotations[vmwarden.io/deadline]"
)

// stamped is a virtual machine as it is stored after its creation by the backend of an environment.
func stamped(environment string, changes ...func(object)) object {
	return vm(environment, append([]func(object){
		set(environment, "spec", "template", "metadata", "labels", "ttlab.io/env"),
		annotation(lab.DeadlineAnnotation, noonsDeadline),
		set(noonsDeadline, "spec", "template", "metadata", "annotations", lab.DeadlineAnnotation),
		set("2026-11-29T12:00:00Z", "metadata", "creationTimestamp"),
	}, changes...)...)
}

func TestValidatorNamesEveryViolation(t *testing.T) {
	foreignClaim := []found{{"EnvironmentMismatch", environmentField}, {"EnvironmentMismatch", templateEnvironmentField}}
	for name, c := range map[string]struct {
		request admission.Request
		want    []found
	}{
		"a backend's own stamped object": {create(prodBackend, stamped("prod")), nil},

		"an unknown user":                           {create("bob", stamped("prod")), []found{{"RequesterUnknown", ""}}},
		"a ServiceAccount of that name elsewhere":   {create("system:serviceaccount:other:backend", stamped("prod")), []found{{"RequesterUnknown", ""}}},
		"a ServiceAccount's name with a part lost":  {create("system:serviceaccount:x", stamped("prod")), []found{{"RequesterUnknown", ""}}},
		"an unknown user's object without labels":   {create("bob", vm("", drop("metadata", "labels"))), []found{{"RequesterUnknown", ""}, {"SessionMissing", sessionField}, {"SessionInvalid", templateSessionField}}},
		"an unknown user's delete":                  {remove("bob", stamped("prod")), []found{{"RequesterUnknown", ""}}},
		"an unknown user drops a finalizer":         {update("bob", stamped("prod", terminating), stamped("prod", terminating)), nil},
		"a backend claims another environment":      {create(devBackend, stamped("prod")), foreignClaim},
		"a backend claims an empty environment":     {create(devBackend, stamped("dev", label("ttlab.io/env", ""))), []found{{"EnvironmentMismatch", environmentField}}},
		"the stamp is missing":                      {create(devBackend, stamped("dev", withoutEnvironment)), []found{{"EnvironmentMismatch", environmentField}}},
		"the template alone claims another":         {create(devBackend, stamped("dev", set("prod", "spec", "template", "metadata", "labels", "ttlab.io/env"))), []found{{"EnvironmentMismatch", templateEnvironmentField}}},
		"an admin may name any environment":         {create(admin, stamped("prod")), nil},
		"a change to another environment's":         {update(devBackend, stamped("prod"), stamped("prod", set("Halted", "spec", "runStrategy"))), []found{{"EnvironmentForeign", environmentField}}},
		"a delete of another environment's":         {remove(devBackend, stamped("prod")), []found{{"EnvironmentForeign", environmentField}}},
		"a reaper's delete of another's":            {remove(prodReaper, stamped("dev")), []found{{"EnvironmentForeign", environmentField}}},
		"a reaper's delete of its own":              {remove(prodReaper, stamped("prod")), nil},
		"a delete of an object without label":       {remove(devBackend, stamped("", withoutEnvironment)), nil},
		"an object without any label map":           {remove(devBackend, vm("", drop("metadata", "labels"))), nil},
		"the label is dropped":                      {update(prodBackend, stamped("prod"), stamped("prod", withoutEnvironment)), []found{{"EnvironmentImmutable", environmentField}}},
		"the label is emptied":                      {update(prodBackend, stamped("prod"), stamped("prod", label("ttlab.io/env", ""))), []found{{"EnvironmentMismatch", environmentField}, {"EnvironmentImmutable", environmentField}}},
		"the label is altered":                      {update(prodBackend, stamped("prod"), stamped("prod", label("ttlab.io/env", "dev"))), []found{{"EnvironmentMismatch", environmentField}, {"EnvironmentImmutable", environmentField}}},
		"the label is altered while terminating":    {update("bob", stamped("prod", terminating), stamped("dev", terminating)), []found{{"EnvironmentImmutable", environmentField}, {"EnvironmentImmutable", templateEnvironmentField}}},
		"an admin alters the label":                 {update(admin, stamped("prod"), stamped("dev")), nil},
		"the right label is added where none was":   {update(prodBackend, stamped("prod", withoutEnvironment), stamped("prod")), nil},
		"a wrong label is added where none was":     {update(devBackend, stamped("dev", withoutEnvironment), stamped("dev", label("ttlab.io/env", "prod"))), []found{{"EnvironmentMismatch", environmentField}}},
		"no session":                                {create(prodBackend, stamped("prod", drop("metadata", "labels", "ttlab.io/session"), drop("spec", "template", "metadata", "labels", "ttlab.io/session"))), []found{{"SessionMissing", sessionField}}},
		"an empty session":                          {create(prodBackend, stamped("prod", label("ttlab.io/session", ""), drop("spec", "template", "metadata", "labels", "ttlab.io/session"))), []found{{"SessionMissing", sessionField}}},
		"a session that is no UUID":                 {create(prodBackend, stamped("prod", label("ttlab.io/session", "x"), set("x", "spec", "template", "metadata", "labels", "ttlab.io/session"))), []found{{"SessionInvalid", sessionField}}},
		"a template in another session":             {create(prodBackend, stamped("prod", set(otherSession, "spec", "template", "metadata", "labels", "ttlab.io/session"))), []found{{"SessionInvalid", templateSessionField}}},
		"the session is altered":                    {update(prodBackend, stamped("prod"), stamped("prod", label("ttlab.io/session", otherSession))), []found{{"SessionImmutable", sessionField}}},
		"the session is dropped":                    {update(prodBackend, stamped("prod"), stamped("prod", drop("metadata", "labels", "ttlab.io/session"))), []found{{"SessionImmutable", sessionField}}},
		"an admin's machine that is no lab's":       {create(admin, vm("", drop("metadata", "labels"))), nil},
		"an admin's lab machine without a session":  {create(admin, stamped("prod", drop("metadata", "labels", "ttlab.io/session"), drop("spec", "template", "metadata", "labels", "ttlab.io/session"))), []found{{"SessionMissing", sessionField}}},
		"a later deadline":                          {create(prodBackend, stamped("prod", annotation(lab.DeadlineAnnotation, "2026-11-29T15:18:00Z"))), []found{{"DeadlineTooLate", deadlineField}}},
		"a later deadline on the template":          {create(prodBackend, stamped("prod", set("2027-11-29T15:18:00Z", "spec", "template", "metadata", "annotations", lab.DeadlineAnnotation))), []found{{"DeadlineTooLate", templateDeadlineField}}},
		"a deadline that is no time":                {create(prodBackend, stamped("prod", annotation(lab.DeadlineAnnotation, "never"))), []found{{"DeadlineTooLate", deadlineField}}},
		"an earlier deadline":                       {create(prodBackend, stamped("prod", annotation(lab.DeadlineAnnotation, "2026-11-29T12:30:00Z"))), nil},
		"an admin's later deadline":                 {create(admin, stamped("prod", annotation(lab.DeadlineAnnotation, "2027-11-29T15:18:00Z"))), nil},
		"the deadline is dropped":                   {update(prodBackend, stamped("prod"), stamped("prod", drop("metadata", "annotations"))), []found{{"DeadlineImmutable", deadlineField}}},
		"the deadline is moved, if only earlier":    {update(prodBackend, stamped("prod"), stamped("prod", annotation(lab.DeadlineAnnotation, "2026-11-29T12:30:00Z"))), []found{{"DeadlineImmutable", deadlineField}}},
		"the garbage collector's delete":            {remove(collector, stamped("prod")), nil},
		"a trusted controller is bound by no label": {update(collector, stamped("prod"), stamped("dev")), nil},
		"everything at once": {
			update(devBackend, stamped("prod"), stamped("dev", label("ttlab.io/session", "x"), drop("metadata", "annotations"))),
			[]found{
				{"EnvironmentForeign", environmentField}, {"SessionInvalid", sessionField},
				{"EnvironmentImmutable", environmentField}, {"EnvironmentImmutable", templateEnvironmentField},
				{"SessionImmutable", sessionField}, {"DeadlineImmutable", deadlineField},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, validate(t, c.request)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
