package denials

import (
	"bytes"
	"time"
	"unique"

	"github.com/ttlab/vmwarden/internal/audit"
)

// record is what a line tells: an attempt at something, and the denial if it was one.
type record struct {
	attempt *attempt
	denial  *Denial
	// audited tells that the line is of an audit log, and so would tell of an allowed request too.
	audited bool
	// stranger tells that the line is of none of the logs that are read here.
	stranger bool
}

// attempt is one request that the webhook decided on, as far as it is needed to say what became of an earlier one.
type attempt struct {
	key
	at      time.Time
	allowed bool
	review  string
}

// key says which requests are one wish: the same requester wants the same of the same object.
type key struct {
	// requester is one of few, and stands in memory once.
	requester       unique.Handle[string]
	operation, kind string
	// object is namespace and name; the session where the request has no name.
	object string
}

func keyOf(d *Denial) key {
	k := key{requester: unique.Make(d.Requester), operation: d.Operation, kind: d.Kind, object: "session " + d.Session}
	if d.Name != "" {
		k.object = d.Namespace + "/" + d.Name
	}
	return k
}

// The words that a line has to contain to be worth decoding: an API server's audit log holds little of ours.
var (
	auditMark = []byte(`"` + audit.AnnotationPrefix)
	ownMark   = []byte(`"msg":"admission `)
	// ownStart is how every line of our own log begins, of whatever it tells.
	ownStart = []byte(`{"level":"`)
)

// read reads one line, a whole JSON object, of any of the logs. A line that tells of something else gives an empty record.
func read(line []byte) (record, error) {
	if bytes.Contains(line, auditMark) {
		if r, found, err := readAudit(line); found || err != nil {
			return r, err
		}
	}
	if bytes.Contains(line, ownMark) {
		return readOwn(line)
	}
	audited := bytes.Contains(line, []byte(audit.Version))
	return record{audited: audited, stranger: !audited && !bytes.HasPrefix(line, ownStart)}, nil
}
