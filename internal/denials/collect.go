package denials

import (
	"fmt"
	"io"
	"slices"
	"time"
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
	denials  newest[*Denial]
	byReview map[string]*Denial
	attempts newest[attempt]
	read     Reading
}

// Reading is what was read and what could not be.
type Reading struct {
	// Lines is the number of lines in all inputs.
	Lines int `json:"lines"`
	// AuditLog tells whether there was an audit log among them.
	AuditLog bool `json:"auditLog"`
	// Broken names the inputs with lines that could not be read.
	Broken []Broken `json:"broken"`
	// LeftOut is how many denials were older than the newest that are listed.
	LeftOut int `json:"leftOut"`
	// RememberedFrom is from when on it is known what became of a denial; the zero time for all of it.
	RememberedFrom time.Time `json:"rememberedFrom,omitzero"`
	// UnknownCodes are codes that this version of vmwarden does not have.
	UnknownCodes []string `json:"unknownCodes"`
}

// Broken is an input with lines that could not be read.
type Broken struct {
	Input string `json:"input"`
	Lines int    `json:"lines"`
	// First is the number of the first such line, Why what is the matter with it.
	First int    `json:"first"`
	Why   string `json:"why"`
}

func (b Broken) String() string {
	return fmt.Sprintf("%s: lines that could not be read: %d, the first is line %d: %s", b.Input, b.Lines, b.First, b.Why)
}

// NewCollector makes a Collector that lists the newest denials, limit of them.
func NewCollector(filter Filter, limit int) *Collector {
	c := &Collector{filter: filter, byReview: map[string]*Denial{}}
	c.denials = newest[*Denial]{
		limit: limit, held: []*Denial{},
		at:     func(d *Denial) time.Time { return d.Time },
		forget: func(d *Denial) { delete(c.byReview, d.Review) },
	}
	c.attempts = newest[attempt]{limit: attemptLimit, at: func(a attempt) time.Time { return a.at }}
	// Lists in a document for programs are never null.
	c.read = Reading{Broken: []Broken{}, UnknownCodes: []string{}}
	return c
}

// Read reads one log, gzipped or not; name is what it is called in the report. Inputs may come in any order. A line that cannot be
// read is counted; an error is one of reading itself, and what came before it is kept.
func (c *Collector) Read(name string, in io.Reader) error {
	content, err := decompressed(in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	broken := Broken{Input: name}
	err = eachLine(content, func(number int, line []byte) {
		c.read.Lines++
		r, err := record{}, errTooLong
		if line != nil {
			r, err = read(line)
		}
		if err != nil {
			if broken.Lines == 0 {
				broken.First, broken.Why = number, err.Error()
			}
			broken.Lines++
			return
		}
		c.take(r)
	})
	if broken.Lines > 0 {
		c.read.Broken = append(c.read.Broken, broken)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

func (c *Collector) take(r record) {
	c.read.AuditLog = c.read.AuditLog || r.audited
	// What was attempted before the time that is asked for became of nothing in it.
	if r.attempt != nil && !r.attempt.at.Before(c.filter.Since) {
		c.attempts.add(*r.attempt)
	}
	if r.denial == nil || !c.filter.wants(r.denial) {
		return
	}
	if r.denial.Review == "" {
		c.denials.add(r.denial)
		return
	}
	if known := c.byReview[r.denial.Review]; known != nil {
		known.merge(r.denial)
		return
	}
	c.byReview[r.denial.Review] = r.denial
	c.denials.add(r.denial)
}

// Report says what was found in all that was read, the oldest denial first. It ends the Collector's use.
func (c *Collector) Report() Report {
	c.denials.trim()
	history := newHistory(&c.attempts, c.read.AuditLog)
	report := Report{Denials: c.denials.held, Read: c.read}
	report.Read.LeftOut = c.denials.dropped
	report.Read.RememberedFrom = c.attempts.floor
	for _, d := range report.Denials {
		d.Later = history.later(d)
		report.Read.UnknownCodes = append(report.Read.UnknownCodes, Unknown(d.Codes)...)
	}
	slices.Sort(report.Read.UnknownCodes)
	report.Read.UnknownCodes = slices.Compact(report.Read.UnknownCodes)
	return report
}
