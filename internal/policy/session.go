package policy

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/lab"
)

// sessionMissing denies the creation of a lab VM that does not say which session it is for.
func sessionMissing(contract lab.Contract, f Facts) []Violation {
	if f.Operation != Create {
		return nil
	}
	key := contract.Labels.Session
	if f.New.Metadata.Labels[key] != "" {
		return nil
	}
	return []Violation{{
		Code:   SessionMissing,
		Field:  labelsPath.Key(key),
		Found:  fmt.Sprintf("label %s is missing or empty", key),
		Remedy: "set it to the id of the session that the virtual machine is for",
	}}
}

// sessionInvalid denies a session id that no row can have, and a template that puts its instances into another session: they
// would be let in by that session's NetworkPolicy.
func sessionInvalid(contract lab.Contract, f Facts) []Violation {
	if f.New == nil {
		return nil
	}
	key := contract.Labels.Session
	session := f.New.Metadata.Labels[key]
	var violations []Violation
	if session != "" && f.oldMetadata().Labels[key] != session {
		if err := contract.SessionIDs.Validate(session); err != nil {
			violations = append(violations, Violation{
				Code:   SessionInvalid,
				Field:  labelsPath.Key(key),
				Found:  fmt.Sprintf("label %s is %q: %v", key, session, err),
				Remedy: "set it to the id of the session exactly as the sessions table holds it",
			})
		}
	}
	template, present := templateOf(f.New).Labels[key]
	if present && template != session && templateOf(f.Old).Labels[key] != template {
		violations = append(violations, Violation{
			Code:   SessionInvalid,
			Field:  templateLabelsPath.Key(key),
			Found:  fmt.Sprintf("label %s on the template is %q, on the virtual machine %q", key, template, session),
			Remedy: "give both the same value, or leave the template's out at creation and it is set",
		})
	}
	return violations
}

// sessionImmutable denies dropping or altering the session label.
func sessionImmutable(contract lab.Contract, f Facts) []Violation {
	return labelImmutable(f, SessionImmutable, contract.Labels.Session)
}
