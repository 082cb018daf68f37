package denials

import (
	"io"
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/logs"
)

// Limits of what is held in memory; beyond them the oldest is let go.
const (
	// DefaultLimit is how many denials are listed. One takes about a kilobyte.
	DefaultLimit = 50_000
	// attemptLimit is how many attempts are remembered to find out what became of a denial: the newest, of whatever requester. One
	// takes about 200 bytes.
	attemptLimit = 100_000
)

// Collector reads logs and keeps the denials that are wanted.
type Collector struct {
	filter   Filter
	denials  logs.Newest[*Denial]
	byReview map[string]*Denial
	attempts logs.Newest[attempt]
	read     Reading
}

// Reading is what was read and what could not be.
type Reading struct {
	// Lines is the number of lines in all inputs.
	Lines int `json:"lines"`
	// AuditLog tells whether there was an audit log among them.
	AuditLog bool `json:"auditLog"`
	// Broken names the inputs with lines that could not be read.
	Broken []logs.Broken `json:"broken"`
	// Strange names the inputs in which no line is of an audit log or of our own: it may be the wrong file that was named.
	Strange []string `json:"strange"`
	// LeftOut is how many denials were older than the newest that are listed.
	LeftOut int `json:"leftOut"`
	// RememberedFrom is from when on it is known what became of a denial; the zero time for all of it.
	RememberedFrom time.Time `json:"rememberedFrom,omitzero"`
	// UnknownCodes are codes that this version of vmwarden does not have.
	UnknownCodes []string `json:"unknownCodes"`
}

// NewCollector makes a Collector that lists the newest denials, limit of them.
func NewCollector(filter Filter, limit int) *Collector {
	c := &Collector{filter: filter, byReview: map[string]*Denial{}}
	c.denials = logs.Newest[*Denial]{
		Limit: limit, Held: []*Denial{},
		At:     func(d *Denial) time.Time { return d.Time },
		Forget: func(d *Denial) { delete(c.byReview, d.Review) },
	}
	c.attempts = logs.Newest[attempt]{Limit: attemptLimit, At: func(a attempt) time.Time { return a.at }}
	// Lists in a document for programs are never null.
	c.read = Reading{Broken: []logs.Broken{}, Strange: []string{}, UnknownCodes: []string{}}
	return c
}

// Read reads one log, gzipped or not; name is what it is called in the report. Inputs may come in any order. A line that cannot be
// read is counted; an error is one of reading itself, and what came before it is kept.
func (c *Collector) Read(name string, in io.Reader) error {
	known := false
	lines, broken, err := logs.Read(name, in, func(line []byte) error {
		r, err := read(line)
		known = known || err != nil || !r.stranger
		if err != nil {
			return err
		}
		c.take(r)
		return nil
	})
	c.read.Lines += lines
	if !known && err == nil {
		c.read.Strange = append(c.read.Strange, name)
	}
	if broken.Lines > 0 {
		c.read.Broken = append(c.read.Broken, broken)
	}
	return err
}

func (c *Collector) take(r record) {
	c.read.AuditLog = c.read.AuditLog || r.audited
	// What was attempted before the time that is asked for became of nothing in it.
	if r.attempt != nil && !r.attempt.at.Before(c.filter.Since) {
		c.attempts.Add(*r.attempt)
	}
	if r.denial == nil || !c.filter.wants(r.denial) {
		return
	}
	if r.denial.Review == "" {
		c.denials.Add(r.denial)
		return
	}
	if known := c.byReview[r.denial.Review]; known != nil {
		known.merge(r.denial)
		return
	}
	c.byReview[r.denial.Review] = r.denial
	c.denials.Add(r.denial)
}

// Report says what was found in all that was read, the oldest denial first. It ends the Collector's use.
func (c *Collector) Report() Report {
	c.denials.Trim()
	history := newHistory(&c.attempts, c.read.AuditLog)
	report := Report{Denials: c.denials.Held, Read: c.read}
	report.Read.LeftOut = c.denials.Dropped
	report.Read.RememberedFrom = c.attempts.Floor
	for _, d := range report.Denials {
		d.Later = history.later(d)
		report.Read.UnknownCodes = append(report.Read.UnknownCodes, Unknown(d.Codes)...)
	}
	slices.Sort(report.Read.UnknownCodes)
	report.Read.UnknownCodes = slices.Compact(report.Read.UnknownCodes)
	return report
}
