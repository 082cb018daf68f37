package lab

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// SessionIDFormat says what a well-formed session id looks like.
type SessionIDFormat string

const (
	// SessionIDUUID is the canonical text form of a UUID, in lower case: what PostgreSQL prints for a uuid column.
	SessionIDUUID SessionIDFormat = "UUID"
	// SessionIDText is any non-empty label value.
	SessionIDText SessionIDFormat = "Text"
)

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Validate says what is wrong with a session id, or nothing. The id has to equal, byte for byte, what the sessions table
// holds: label and row are matched as text.
func (f SessionIDFormat) Validate(id string) error {
	if id == "" {
		return fmt.Errorf("a session id must not be empty")
	}
	if f == SessionIDText {
		if problems := validation.IsValidLabelValue(id); len(problems) > 0 {
			return fmt.Errorf("not a label value: %s", strings.Join(problems, "; "))
		}
		return nil
	}
	if !canonicalUUID.MatchString(id) {
		return fmt.Errorf("not a UUID in lower case, such as a0000000-0000-4000-8000-000000000001")
	}
	return nil
}
