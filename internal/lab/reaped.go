package lab

import (
	"encoding/json"
	"fmt"
	"time"
)

// ReapedAnnotation says why a virtual machine is being deleted, in the form of Reaped.
const ReapedAnnotation = "vmwarden.io/reaped"

// The messages of log lines that tell what became of a machine, by which they are found.
const (
	// GoneMessage is of the webhook's leader, which saw a reaped machine go.
	GoneMessage = "a reaped virtual machine is gone"
	// ItemMessage is of a pass, for every item that it was done with.
	ItemMessage = "item finished"
)

// Reaped is what a reaper writes on a virtual machine just before it asks for its deletion. Whoever sees the machine go can
// tell from it how long that took.
type Reaped struct {
	// Reason is the direction: deadline, expired or orphan.
	Reason string `json:"reason"`
	// Since is when the reason came to be: the session's end, the deadline, or the creation of an orphan.
	Since time.Time `json:"since"`
	// DeletionAskedAt is when a pass first asked for the deletion for this reason, by the reaper's clock.
	DeletionAskedAt time.Time `json:"deletionAskedAt"`
}

// Format writes the annotation's value: JSON, its times RFC 3339 in UTC.
func (r Reaped) Format() (string, error) {
	r.Since, r.DeletionAskedAt = r.Since.UTC(), r.DeletionAskedAt.UTC()
	value, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("writing annotation %s: %w", ReapedAnnotation, err)
	}
	return string(value), nil
}

// ParseReaped reads the annotation's value.
func ParseReaped(value string) (Reaped, error) {
	var r Reaped
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Reaped{}, fmt.Errorf("annotation %s is %q: %w", ReapedAnnotation, value, err)
	}
	return r, nil
}
