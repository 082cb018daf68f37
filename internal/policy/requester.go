package policy

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/lab"
)

// requesterUnknown denies everybody whom the configuration does not name.
func requesterUnknown(_ lab.Contract, f Facts) []Violation {
	if f.Requester.Kind != lab.Unknown {
		return nil
	}
	return []Violation{{
		Code:   RequesterUnknown,
		Found:  fmt.Sprintf("%q is neither a backend, a reaper, a trusted controller nor an admin of vmwarden", f.Requester.Username),
		Remedy: "sign in as one of them, or have an admin add the identity to vmwarden's configuration",
	}}
}
