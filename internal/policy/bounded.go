package policy

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/status"
)

// A denial goes to the requester, the log, an Event in etcd and the audit log. What of it is the requester's own text, and how many faults an
// object has, is for the requester to choose: an annotation may have 256 KiB, an object ten thousand owners.
const (
	// maxFound is in bytes.
	maxFound = 500
	// maxOfCode is how many violations of one code are told one by one.
	maxOfCode = 20
)

// bounded shortens what was found, and of each code leaves out all but the first violations, and tells how many those are. No code is left
// out.
func bounded(violations []Violation) []Violation {
	counts := map[Code]int{}
	var kept []Violation
	for _, violation := range violations {
		counts[violation.Code]++
		if counts[violation.Code] <= maxOfCode {
			violation.Found = status.Shorten(violation.Found, maxFound)
			kept = append(kept, violation)
		}
	}
	for _, code := range Codes() {
		if more := counts[code] - maxOfCode; more > 0 {
			kept = append(kept, Violation{Code: code, Found: fmt.Sprintf("%d more of the kind were found", more), Remedy: "mend all of them"})
		}
	}
	return kept
}
