package trace

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ttlab/vmwarden/internal/audit"
)

// record is a line of the time line, and what it says of the life that it happened in.
type record struct {
	Line
	object object
	// uid is the object's own; empty where it is not told.
	uid string
	// review joins what two logs tell of one denial.
	review string
	// codes are a denial's.
	codes []string
	// session and environment are the object's, empty where not told.
	session, environment string
	// before tells that it happened before a life: a creation that was refused.
	before bool
	// state is the machine's metadata as the record shows it; nil where it does not.
	state *audit.Metadata
	// bodiless tells that the audit log has no bodies of it.
	bodiless bool
	// mark is the reaper's annotation as somebody writes it.
	mark string
}

// key is the same for what is the same: a denial has its review; of all else the whole line, with its time and the audit id, which a client
// may choose.
func (r *record) key() string {
	if r.review != "" {
		return r.review
	}
	return fmt.Sprint(r.Source, r.Time.UnixNano(), r.Who, r.Object, r.What, r.Reference, r.Text)
}

// at gives the record's time, for what keeps the newest.
func (r *record) at() time.Time { return r.Time }

// auditMark is in every entry of an audit log, ownMark in every line of our own that is of use here.
var (
	auditMark      = []byte(audit.Version)
	collectionMark = []byte(`"verb":"deletecollection"`)
	ownMark        = []byte(`"msg":"`)
)

// read makes records of a line, a whole JSON object; none where it is of no use.
func (c *Collector) read(line []byte) ([]*record, error) {
	audited := bytes.Contains(line, auditMark)
	c.reading.AuditLog = c.reading.AuditLog || audited
	if !c.wanted.mentions(line) && (!audited || !bytes.Contains(line, collectionMark)) {
		return nil, nil
	}
	switch {
	case audited:
		return c.readAudit(line)
	case bytes.Contains(line, ownMark):
		return c.readOwn(line)
	}
	return nil, nil
}
