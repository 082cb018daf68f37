package reap

import "time"

// Session is a row of the sessions table that is not known to be over.
type Session struct {
	ID string
	// Runtime and Status are in the words of the configuration; empty for a NULL.
	Runtime string
	Status  string
	// VMName is empty until the backend knows it.
	VMName string
	// StartedAt and ExpiresAt are nil for a NULL and for what is no point in time, such as infinity.
	StartedAt *time.Time
	ExpiresAt *time.Time
	// PastEnd tells whether expires_at has passed by the database's clock.
	PastEnd bool
}

// Rows is one reading of the sessions table, all of one moment.
type Rows struct {
	Sessions []Session
	// Now is the database's clock at that moment.
	Now time.Time
	// Fence is the environment that the database says it belongs to; empty where it says nothing.
	Fence string
	// ReadOnly is true for a standby, and for a database that was closed to writes: what it says may be old.
	ReadOnly bool
}
