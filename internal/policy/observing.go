package policy

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/ttlab/vmwarden/internal/lab"
)

// asStamped gives a new object as it would be with our stamps. While the Validator only reports, the Mutator adds nothing, and an
// object without its stamps would be reported for lacking what it would have been given.
func asStamped(contract lab.Contract, f Facts) ([]byte, error) {
	operations := stamps(contract, f, nil)
	if len(operations) == 0 {
		return f.Raw, nil
	}
	content, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("writing the stamps: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(content)
	if err != nil {
		return nil, fmt.Errorf("reading the stamps: %w", err)
	}
	stamped, err := patch.Apply(f.Raw)
	if err != nil {
		return nil, fmt.Errorf("stamping the object: %w", err)
	}
	return stamped, nil
}
