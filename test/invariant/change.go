package invariant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Change is one change of a row of an environment's sessions table, as the recorder's trigger noted it. It took place when the row was
// already locked, so that the order of changes of one row is the order of these times.
type Change struct {
	Environment string    `json:"environment"`
	At          time.Time `json:"at"`
	// By is the database's role.
	By string `json:"by"`
	// Session is the row's id.
	Session string `json:"session"`
	// Before and After are nil where the row was inserted, or deleted.
	Before *Row `json:"before"`
	After  *Row `json:"after"`
}

// Row is what a row says.
type Row struct {
	Status     string     `json:"status"`
	ExpiresAt  *time.Time `json:"expires_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// Rest is everything else in the row, as text.
	Rest string `json:"rest"`
}

// ReadChanges reads changes as JSON lines, as the recorder's table gives them by row_to_json.
func ReadChanges(in io.Reader) ([]Change, error) {
	decoder := json.NewDecoder(in)
	var changes []Change
	for {
		var c Change
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) {
			return changes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("change %d of the rows: %w", len(changes)+1, err)
		}
		changes = append(changes, c)
	}
}
