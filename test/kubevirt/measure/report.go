package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// auditEvent is what is needed of a line of the API server's audit log.
type auditEvent struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// readAsked takes from the API server's audit log when the reaper's deletions arrived, to the microsecond.
func (m *measurement) readAsked() (err error) {
	file, err := os.Open(m.lab.ControlPlane.AuditLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return m.expectAllAsked()
		}
		if err != nil {
			return err
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if event.Verb != "delete" || event.ObjectRef.Resource != "virtualmachines" || !strings.HasSuffix(event.User.Username, ":reaper") {
			continue
		}
		if s := m.samples[event.ObjectRef.Name]; s != nil && s.asked.IsZero() {
			s.asked = event.RequestReceivedTimestamp
		}
	}
}

func (m *measurement) expectAllAsked() error {
	for name, s := range m.samples {
		if s.asked.IsZero() {
			return fmt.Errorf("%s went, and the reaper never asked for it", name)
		}
	}
	return nil
}

func (m *measurement) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "from → to\tn\tmedian\tp95\tp99\tmax")
	for _, part := range []struct {
		name string
		of   func(*sample) time.Duration
	}{
		{"session expires → delete asked", func(s *sample) time.Duration { return s.asked.Sub(s.expired) }},
		{"delete asked → machine gone", func(s *sample) time.Duration { return s.gone.Sub(s.asked) }},
		{"session expires → machine gone", func(s *sample) time.Duration { return s.gone.Sub(s.expired) }},
	} {
		var times []time.Duration
		for _, s := range m.samples {
			times = append(times, part.of(s))
		}
		slices.Sort(times)
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", part.name, len(times), quantile(times, 50), quantile(times, 95), quantile(times, 99), quantile(times, 100))
	}
	// What is printed to a terminal that is gone has no reader left.
	_ = table.Flush()
}

// quantile is the smallest of the times that so many percent do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1].Round(10 * time.Millisecond)
}
