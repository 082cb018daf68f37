package trace

import (
	"io"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/logs"
)

// recordLimit is how many records are held, the newest. A session makes some hundreds.
const recordLimit = 20_000

// Options say how to read.
type Options struct {
	// Labels are the lab's; they tell a session where the audit log holds bodies.
	Labels lab.Labels
	// Identities classify who did something; nil where no configuration says.
	Identities *lab.Identities
	// Lifetimes are zero where no configuration says.
	Lifetimes lab.Lifetimes
}

// Collector reads logs and keeps what is of use.
type Collector struct {
	options Options
	wanted  *wanted
	records logs.Newest[*record]
	// byKey finds a record again: two logs tell of one denial, and a line may be given twice.
	byKey   map[string]*record
	reading Reading
	facts   *Facts
}

// NewCollector makes a Collector for a session or the name of a virtual machine.
func NewCollector(asked string, options Options) *Collector {
	c := &Collector{options: options, wanted: newWanted(asked)}
	c.begin()
	return c
}

func (c *Collector) begin() {
	c.byKey = map[string]*record{}
	c.records = logs.Newest[*record]{Limit: recordLimit, At: (*record).at, Forget: func(r *record) { delete(c.byKey, r.key()) }}
	// Lists in a document for programs are never null.
	c.reading = Reading{Inputs: []string{}, Broken: []logs.Broken{}}
}

// Learned counts the names that were learned while reading: what was read before one may hold more of it. Again reads anew.
func (c *Collector) Learned() int { return c.wanted.grew }

// Once notes that something was learned from an input that cannot be read again.
func (c *Collector) Once() { c.reading.Once = true }

// Again forgets what was read from logs, and keeps what was learned.
func (c *Collector) Again() { c.begin() }

// Read reads one log, gzipped or not; name is what it is called in the report. Inputs may come in any order. A line that cannot be
// read is counted; an error is one of reading itself, and what came before it is kept.
func (c *Collector) Read(name string, in io.Reader) error {
	c.reading.Inputs = append(c.reading.Inputs, name)
	lines, broken, err := logs.Read(name, in, func(line []byte) error {
		records, err := c.read(line)
		for _, r := range records {
			c.take(r)
		}
		return err
	})
	c.reading.Lines += lines
	if broken.Lines > 0 {
		c.reading.Broken = append(c.reading.Broken, broken)
	}
	return err
}

// take keeps a record. A denial that two logs tell of is kept once: the audit log's time, our own log's text.
func (c *Collector) take(r *record) {
	known := c.byKey[r.key()]
	if known == nil {
		c.byKey[r.key()] = r
		c.records.Add(r)
		return
	}
	if known.Source == r.Source {
		// The line was given twice, as where a log was copied while it was rotated.
		return
	}
	audited, own := known, r
	if r.Source == AuditLog {
		audited, own = r, known
	}
	text := own.Text
	*known = *audited
	known.Text = text
}
