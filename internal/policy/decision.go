package policy

import (
	"strings"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// Decision is what is answered to a request, before it is put into the API server's terms.
type Decision struct {
	Violations []Violation
	// Warnings are shown to the requester; they change nothing.
	Warnings []string
	// Places is the ledger's count; nil where no place was asked for.
	Places *ledger.Verdict
	// ReportOnly admits the request whatever was found, and tells what was.
	ReportOnly bool
}

// Allowed tells whether every rule lets the request pass.
func (d Decision) Allowed() bool { return len(d.Violations) == 0 }

// Admitted tells whether the request passes.
func (d Decision) Admitted() bool { return d.Allowed() || d.ReportOnly }

// The words for a decision, in metrics and in the API server's audit log. They are API, as the codes are.
const (
	AllowedWord  = "allow"
	DeniedWord   = "deny"
	ReportedWord = "would-deny"
)

func (d Decision) word() string {
	switch {
	case d.Allowed():
		return AllowedWord
	case d.ReportOnly:
		return ReportedWord
	}
	return DeniedWord
}

// Codes lists the violations' codes, each once, in the order of the rules.
func (d Decision) Codes() []string {
	var codes []string
	seen := map[Code]bool{}
	for _, violation := range d.Violations {
		if !seen[violation.Code] {
			seen[violation.Code] = true
			codes = append(codes, string(violation.Code))
		}
	}
	return codes
}

// Message tells every violation in one line, each led by its code and told by say.
func (d Decision) Message(say func(Violation) string) string {
	parts := make([]string, len(d.Violations))
	for i, violation := range d.Violations {
		parts[i] = string(violation.Code) + ": " + say(violation)
	}
	return strings.Join(parts, " | ")
}

// warnings tells a requester what is allowed and yet not as it should be.
func warnings(contract lab.Contract, f Facts) []string {
	if f.Requester.Kind == lab.TrustedController || !concernsLab(contract, f) {
		return nil
	}
	what := string(f.Kind) + " " + f.Name
	key := contract.Labels.Environment
	if environment := f.Subject().Metadata.Labels[key]; environment == "" {
		return []string{what + " has no label " + key + ": no environment's reaper takes it for its own"}
	} else if !contract.HasEnvironment(environment) {
		return []string{"label " + key + " of " + what + " is \"" + environment + "\", an environment that vmwarden's configuration does not have"}
	}
	return nil
}
