package policy

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// capCodes are the codes for limits that are used up by what exists.
var capCodes = map[ledger.Scope]Code{
	ledger.Namespace:   CapVMs,
	ledger.Environment: CapEnvironment,
	ledger.Session:     CapSession,
	ledger.CPU:         CapCPU,
	ledger.Memory:      CapMemory,
}

// capViolations put the ledger's refusal into words, one for each limit. Where the claim would fit without what is only reserved,
// waiting a moment may be enough, and the code says so.
func capViolations(contract lab.Contract, f Facts, verdict ledger.Verdict) []Violation {
	violations := make([]Violation, 0, len(verdict.Shortages))
	for i, short := range verdict.Shortages {
		violation := Violation{
			Code:   capCodes[short.Scope],
			Field:  capField(contract, short.Scope),
			Found:  shortageInWords(contract, f, short),
			Remedy: whenToTryAgain(f.Now, short),
		}
		if i == 0 {
			violation.Found += holders(contract, f, verdict.Tally)
		}
		if short.OnlyReserved() {
			violation.Code = CapReserved
			violation.Remedy = fmt.Sprintf("try again in a moment; what is reserved for a create that fails is free again in %s at most",
				rounded(short.FirstLapse))
		}
		violations = append(violations, violation)
	}
	return violations
}

func capField(contract lab.Contract, scope ledger.Scope) *field.Path {
	switch scope {
	case ledger.Environment:
		return labelsPath.Key(contract.Labels.Environment)
	case ledger.Session:
		return labelsPath.Key(contract.Labels.Session)
	case ledger.CPU, ledger.Memory:
		return field.NewPath("spec", "template", "spec", "domain")
	default:
		return nil
	}
}

func shortageInWords(contract lab.Contract, f Facts, short ledger.Shortage) string {
	environment, session := belongings(contract, f)
	amount := func(n int64) string { return fmt.Sprint(n) }
	what, of := "virtual machines", "namespace "+f.Namespace
	switch short.Scope {
	case ledger.Environment:
		of = "environment " + environment
	case ledger.Session:
		of = "session " + session
	case ledger.CPU:
		what, amount = "CPUs requested", cpus
	case ledger.Memory:
		what, amount = "of memory requested", gibibytes
	case ledger.Name:
		return fmt.Sprintf("%d other creates of a virtual machine %s, each for another session, are under way", short.Reserved, f.Name)
	}
	words := fmt.Sprintf("%s has %s %s", of, amount(short.Used), what)
	if short.Reserved > 0 {
		words += fmt.Sprintf(" and %s more for virtual machines that are being created this moment", amount(short.Reserved))
	}
	words += fmt.Sprintf("; at most %s are allowed", amount(short.Limit))
	if short.Scope == ledger.CPU || short.Scope == ledger.Memory {
		words += fmt.Sprintf(", and this one's launcher Pod would request %s, KubeVirt's overhead included", amount(short.Asked))
	}
	return words
}

func cpus(milli int64) string { return fmt.Sprintf("%.3f", float64(milli)/1000) }

func gibibytes(n int64) string { return fmt.Sprintf("%.2f Gi", float64(n)/(1<<30)) }

// holders tells who holds the places: how many each environment has, and, of the requester's own, which sessions. Another
// environment's sessions are not the requester's business.
func holders(contract lab.Contract, f Facts, tally ledger.Tally) string {
	var parts []string
	for _, share := range environmentShares(contract, tally) {
		part := fmt.Sprintf("%s holds %d", share.name, share.Used+share.Reserved)
		if share.name == f.Requester.Environment && f.Requester.ActsForEnvironment() {
			if sessions := sessionsOf(tally, share.name); sessions != "" {
				part += " (sessions " + sessions + ")"
			}
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// whenToTryAgain tells when the next place is due for certain. A session may end long before the deadline of its virtual
// machine, but nothing in the cluster knows.
func whenToTryAgain(now time.Time, short ledger.Shortage) string {
	const remedy = "try again when a session has ended, or ask for less; a virtual machine holds its place until it is gone"
	switch {
	case short.Asked > short.Limit:
		return "ask for less: it would not fit if nothing else existed"
	case short.NextDeadline.IsZero():
		return remedy
	case short.NextDeadline.After(now):
		return fmt.Sprintf("%s; the next deadline is %s, in %s", remedy, lab.FormatDeadline(short.NextDeadline), rounded(short.NextDeadline.Sub(now)))
	default:
		return fmt.Sprintf("%s; a virtual machine here is past its deadline, %s, and about to go", remedy, lab.FormatDeadline(short.NextDeadline))
	}
}

func rounded(d time.Duration) time.Duration {
	return max(d, time.Second).Round(time.Second)
}

// lastPlaceWarnings tell a requester who takes the last place that nobody else will get one.
func lastPlaceWarnings(contract lab.Contract, f Facts, verdict ledger.Verdict) []string {
	environment, _ := belongings(contract, f)
	var warnings []string
	for _, scope := range verdict.Last {
		of := "namespace " + f.Namespace
		if scope == ledger.Environment {
			of = "environment " + environment
		}
		warnings = append(warnings, fmt.Sprintf("virtual machine %s takes the last place of %s%s", f.Name, of, holders(contract, f, verdict.Tally)))
	}
	return warnings
}

// capUnknownViolation says that the places could not be counted. The cause goes to the log: it names things of the cluster
// that are not the requester's business.
func capUnknownViolation(namespace string, timeUp bool) Violation {
	violation := Violation{
		Code:   CapUnknown,
		Found:  fmt.Sprintf("the virtual machines of namespace %s could not be counted, so nobody knows whether one more fits", namespace),
		Remedy: "try again in a moment; if it stays so, an admin finds the cause in vmwarden's log",
	}
	if timeUp {
		violation.Found = fmt.Sprintf("the virtual machines of namespace %s could not be counted within %s, so nobody knows whether one more fits",
			namespace, ledger.DecisionTimeout)
	}
	return violation
}

// incalculableViolation says that nobody knows what a virtual machine would request, and why.
func incalculableViolation(name, why string) Violation {
	return Violation{
		Code:   CapUnknown,
		Found:  fmt.Sprintf("what virtual machine %s would request cannot be calculated: %s", name, why),
		Remedy: "correct it, or try again in a moment",
	}
}

// shortageBehind is the first shortage that a code was given for.
func shortageBehind(verdict ledger.Verdict, code Code) ledger.Shortage {
	for _, short := range verdict.Shortages {
		if (code == CapReserved && short.OnlyReserved()) || (code == capCodes[short.Scope] && !short.OnlyReserved()) {
			return short
		}
	}
	return ledger.Shortage{}
}

// inUnits gives an amount as a person counts it: places, CPUs or Gi, rounded up.
func inUnits(scope ledger.Scope, amount int64) int {
	switch scope {
	case ledger.CPU:
		return int((amount + 999) / 1000)
	case ledger.Memory:
		return int((amount + 1<<30 - 1) >> 30)
	default:
		return int(amount)
	}
}
