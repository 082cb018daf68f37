package policy

import (
	"fmt"
	"time"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// capViolation puts the ledger's refusal into words. Where objects alone fill the places the code is CapVMs; where some are
// only reserved, waiting a moment may be enough, and the code says so.
func capViolation(namespace string, verdict ledger.Verdict) Violation {
	if verdict.Used >= verdict.Limit {
		return Violation{
			Code:   CapVMs,
			Found:  fmt.Sprintf("namespace %s has %d virtual machines, and at most %d are allowed", namespace, verdict.Used, verdict.Limit),
			Remedy: "try again when a session has ended; a virtual machine holds its place until it is gone",
		}
	}
	return Violation{
		Code: CapReserved,
		Found: fmt.Sprintf("namespace %s has %d virtual machines and %d more are being created this moment; at most %d are allowed",
			namespace, verdict.Used, verdict.Reserved, verdict.Limit),
		Remedy: fmt.Sprintf("try again in a moment; a place whose create fails is free again in %s at most", max(verdict.ReservedFor, 0).Round(time.Second)),
	}
}

// capUnknownViolation says that the places could not be counted. The cause goes to the log: it names things of the cluster
// that are not the requester's business.
func capUnknownViolation(namespace string) Violation {
	return Violation{
		Code:   CapUnknown,
		Found:  fmt.Sprintf("the virtual machines of namespace %s could not be counted, so nobody knows whether one more fits", namespace),
		Remedy: "try again in a moment; if it stays so, an admin finds the cause in vmwarden's log",
	}
}
