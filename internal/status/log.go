package status

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ttlab/vmwarden/internal/logs"
)

// FinishedMessage is the message of the log line that ends a pass. Its field "pass" is the pass as a ConfigMap keeps it, and its field
// "environment" whose it was.
const FinishedMessage = "pass finished"

// historyLimit bounds how many passes are held: a week of one a minute.
const historyLimit = 10_080

// History is an environment's passes, from its ConfigMap and from as many logs as were kept.
type History struct {
	// Status is what the ConfigMap says.
	Status Status
	// Passes are all that are known, the newest first.
	Passes []Pass
	// Logs are the names of what was read besides, Broken those with lines that could not be read.
	Logs   []string
	Broken []logs.Broken
	// LeftOut is how many were older than the newest that are held.
	LeftOut int

	since  time.Time
	passes logs.Newest[Pass]
	known  map[int64]bool
}

// NewHistory begins with what the ConfigMap says; passes before since are left out.
func NewHistory(status Status, since time.Time) *History {
	h := &History{Status: status, since: since, known: map[int64]bool{}}
	h.passes = logs.Newest[Pass]{
		Limit: historyLimit, At: func(p Pass) time.Time { return p.StartedAt },
		Forget: func(p Pass) { delete(h.known, p.StartedAt.UnixNano()) },
	}
	for _, pass := range status.Passes {
		h.add(pass)
	}
	return h
}

// add takes a pass once: its start tells it, and the two sources write it alike.
func (h *History) add(pass Pass) {
	if pass.StartedAt.Before(h.since) || h.known[pass.StartedAt.UnixNano()] {
		return
	}
	h.known[pass.StartedAt.UnixNano()] = true
	h.passes.Add(pass)
}

// Read reads a log of reapjob, gzipped or not, of one pass or many; name is what it is called in the report. Other environments' passes are
// left out, and so are lines that begin as no JSON object: a container's log holds the table of stdout too.
func (h *History) Read(name string, in io.Reader) error {
	h.Logs = append(h.Logs, name)
	_, broken, err := logs.ReadAmong(name, in, h.take)
	if broken.Lines > 0 {
		h.Broken = append(h.Broken, broken)
	}
	return err
}

func (h *History) take(line []byte) error {
	var l struct {
		Message     string `json:"msg"`
		Environment string `json:"environment"`
		Pass        *Pass  `json:"pass"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("reading a line of reapjob's log: %w", err)
	}
	if l.Message != FinishedMessage || l.Environment != h.Status.Environment {
		return nil
	}
	if l.Pass == nil || l.Pass.StartedAt.IsZero() {
		return fmt.Errorf("a line %q has no pass", FinishedMessage)
	}
	h.add(*l.Pass)
	return nil
}

// end puts the passes in order.
func (h *History) end() {
	h.passes.Trim()
	h.Passes, h.LeftOut = slices.Clone(h.passes.Held), h.passes.Dropped
	slices.Reverse(h.Passes)
}
