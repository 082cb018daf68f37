package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// environmentMismatch denies an object that claims another environment than its requester's, on itself or on its template. A
// label that is missing at creation was not stamped: the mutating webhook did not run.
func environmentMismatch(contract lab.Contract, f Facts) []Violation {
	if !f.Requester.ActsForEnvironment() || f.New == nil {
		return nil
	}
	key := contract.Labels.Environment
	var violations []Violation
	check := func(path *field.Path, old, new map[string]string) {
		value, present := new[key]
		was, had := old[key]
		if f.Operation == Update && present == had && value == was {
			// Nothing is claimed that was not there before: EnvironmentForeign judges whether it may be touched.
			return
		}
		if value == f.Requester.Environment || (!present && f.Operation == Update) {
			return
		}
		if !present && f.Kind != VirtualMachine && !marked(contract.Labels, f.New) {
			// A Secret of the backend's own, of no session.
			return
		}
		found := fmt.Sprintf("label %s is %q, but %s belongs to environment %q", key, value, f.Requester.Username, f.Requester.Environment)
		if !present {
			found = fmt.Sprintf("label %s is missing and was not stamped", key)
		}
		violations = append(violations, Violation{
			Code:   EnvironmentMismatch,
			Field:  path.Key(key),
			Found:  found,
			Remedy: fmt.Sprintf("set it to %q, or leave it out at creation and it is set", f.Requester.Environment),
		})
	}
	check(labelsPath, f.oldMetadata().Labels, f.New.Metadata.Labels)
	if f.New.HasTemplate {
		check(templateLabelsPath, templateOf(f.Old).Labels, templateOf(f.New).Labels)
	}
	return violations
}

// environmentForeign denies a backend or reaper the objects of other environments. An object without the label, from before
// vmwarden, is nobody's in particular and passes.
func environmentForeign(contract lab.Contract, f Facts) []Violation {
	if !f.Requester.ActsForEnvironment() || f.Old == nil {
		return nil
	}
	key := contract.Labels.Environment
	owner := f.Old.Metadata.Labels[key]
	if owner == "" || owner == f.Requester.Environment {
		return nil
	}
	return []Violation{{
		Code:   EnvironmentForeign,
		Field:  labelsPath.Key(key),
		Found:  fmt.Sprintf("%s %q belongs to environment %q, and %s to %q", f.Kind, f.Name, owner, f.Requester.Username, f.Requester.Environment),
		Remedy: fmt.Sprintf("leave it to environment %q; select by the label %s=%s what is yours", owner, key, f.Requester.Environment),
	}}
}

// environmentImmutable denies dropping or altering the label.
func environmentImmutable(contract lab.Contract, f Facts) []Violation {
	return labelImmutable(f, EnvironmentImmutable, contract.Labels.Environment)
}

// labelImmutable denies dropping or altering a label, on the object or on its template, by anybody but an admin. One that was
// missing or empty may be set.
func labelImmutable(f Facts, code Code, key string) []Violation {
	if f.Operation != Update {
		return nil
	}
	violations := immutable(f, code, "label", labelsPath.Key(key), f.Old.Metadata.Labels, f.New.Metadata.Labels, key)
	return append(violations, immutable(f, code, "label", templateLabelsPath.Key(key), templateOf(f.Old).Labels, templateOf(f.New).Labels, key)...)
}

func immutable(f Facts, code Code, what string, path *field.Path, old, new map[string]string, key string) []Violation {
	was := old[key]
	value, present := new[key]
	if was == "" || value == was || f.Requester.Kind == lab.Admin {
		return nil
	}
	found := fmt.Sprintf("%s %s would change from %q to %q", what, key, was, value)
	if !present {
		found = fmt.Sprintf("%s %s with the value %q would be dropped", what, key, was)
	}
	return []Violation{{
		Code:   code,
		Field:  path,
		Found:  found,
		Remedy: "leave it as it is; only an admin may change it",
	}}
}
