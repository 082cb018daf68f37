// check says whether what happened broke an invariant: it reads kube-apiserver's audit log, the recorded changes of the sessions tables
// and the configuration file.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/test/invariant"
)

const usage = `usage: check --config FILE --audit FILE [--changes FILE] [flags]

Says whether an invariant was broken. Exit status: 0 none was, 1 some were, or the files could not be read, 2 wrong use.

  check --config config.yaml --audit audit.log --changes changes.jsonl
  check --config config.yaml --audit audit.log --interrupted 2026-09-12T10:00:00Z -o json

The changes are JSON lines, one for each row of the recorder's table (test/invariant/recorder.sql), with the name of the environment:

  select row_to_json(c) from (select 'prod' as environment, * from recorded_changes order by number) as c

`

// moments are the values of a flag that may be repeated.
type moments []time.Time

func (m *moments) String() string { return fmt.Sprint(*m) }

func (m *moments) Set(value string) error {
	moment, err := time.Parse(time.RFC3339Nano, value)
	*m = append(*m, moment)
	return err
}

type options struct {
	config, audit, changes, output string
	history                        invariant.History
}

func main() {
	var o options
	flags := flag.NewFlagSet("check", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.config, "config", "", "configuration file (kind WardenConfig); required")
	flags.StringVar(&o.audit, "audit", "", "audit log of kube-apiserver, KubeVirt's objects at level RequestResponse; required")
	flags.StringVar(&o.changes, "changes", "", "recorded changes of the sessions tables; without them nothing is said about sessions")
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.StringVar(&o.history.ReaperRole, "reaper-role", "reaper", "database role of the reapers")
	flags.DurationVar(&o.history.DeadlineSlack, "deadline-slack", 0, "how long after its deadline a machine may exist; 0: deadlines are not judged")
	flags.Var((*moments)(&o.history.Interruptions), "interrupted", "moment (RFC 3339) at which an API server died; may be repeated")
	_ = flags.Parse(os.Args[1:]) // ends the program itself
	if o.config == "" || o.audit == "" || flags.NArg() > 0 || (o.output != "text" && o.output != "json") {
		flags.Usage()
		os.Exit(2)
	}
	held, err := o.run(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
	}
	if err != nil || !held {
		os.Exit(1)
	}
}

func (o *options) run(out io.Writer) (held bool, err error) {
	if o.history.Configuration, err = config.Load(o.config); err != nil {
		return false, err
	}
	if err := reading(o.audit, func(in io.Reader) (err error) {
		o.history.Writes, err = invariant.ReadAudit(in)
		return err
	}); err != nil {
		return false, err
	}
	if o.changes != "" {
		if err := reading(o.changes, func(in io.Reader) (err error) {
			o.history.Changes, err = invariant.ReadChanges(in)
			return err
		}); err != nil {
			return false, err
		}
	}
	verdict := invariant.Check(&o.history)
	held = len(verdict.Violations) == 0
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return held, encoder.Encode(verdict)
	}
	return held, verdict.WriteText(out)
}

func reading(path string, read func(io.Reader) error) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := read(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
