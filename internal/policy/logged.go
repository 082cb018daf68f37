package policy

import "time"

// LoggedDenial is the line that a denial is in our own log, for whoever reads logs. Validator.record writes it; the names are API.
type LoggedDenial struct {
	Time          time.Time `json:"ts"`
	Message       string    `json:"msg"`
	Review        string    `json:"review"`
	Codes         []string  `json:"codes"`
	Operation     string    `json:"operation"`
	Kind          string    `json:"kind"`
	Namespace     string    `json:"namespace"`
	Name          string    `json:"name"`
	UID           string    `json:"uid"`
	Environment   string    `json:"environment"`
	Session       string    `json:"session"`
	Requester     string    `json:"requester"`
	RequesterKind string    `json:"requesterKind"`
	DryRun        bool      `json:"dryRun"`
	Text          string    `json:"message"`
}
