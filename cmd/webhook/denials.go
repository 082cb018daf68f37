package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/denials"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/terminal"
)

// denialsOptions are denials' flags and arguments.
type denialsOptions struct {
	since, until string
	filter       denials.Filter
	groupBy      string
	output       string
	limit        int
	files        []string
	clock        clock.PassiveClock
}

func newDenialsCommand() *cobra.Command {
	o := denialsOptions{clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "denials [FILE…]",
		Short: "List denials from audit logs and the webhook's own log",
		Long: `Lists who was denied what, when, by which rule and why, and what became of it, from kube-apiserver's audit logs and the
webhook's own log. Both kinds are told apart line by line, gzipped or not, in any order and mixed. Without FILE, or with -, it reads stdin.
What mode Audit only would have denied is listed and marked. One denial that both logs tell of is listed once.

Whether a request was allowed later is known from an audit log alone. The newest --limit denials are listed (about 1 KB of memory each),
and the newest 100000 attempts remembered; what does not fit is said on stderr, and so are lines that could not be read.

Exit status: 0 when every file was read (lines that could not be read change nothing), 1 when a file could not be read (what the others
hold is printed all the same), 2 for wrong use.`,
		Example: `  webhook denials --since 24h /var/log/kubernetes/audit.log
  webhook denials --since 7d --environment dev --code CapVMs -o csv audit*.log.gz audit.log
  kubectl -n vmwarden logs -l app.kubernetes.io/component=webhook --tail=-1 | webhook denials --group-by code
  webhook denials -o html audit.log webhook-*.log > denials.html
  webhook denials -o json audit.log | jq -r '.denials[] | select(.later.state == "denied") | .session'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			o.files = arguments
			if faults := o.complete(); len(faults) > 0 {
				return cli.WrongUse(faults...)
			}
			return o.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.since, "since", "", "from when on: how long ago, such as 24h or 7d, or a time such as 2026-11-29T15:00:00Z; without it all")
	flags.StringVar(&o.until, "until", "", "until when, in the same forms; without it all")
	flags.StringSliceVar(&o.filter.Codes, "code", nil, "only denials by this code; may be repeated")
	flags.StringSliceVar(&o.filter.Environments, "environment", nil, "only objects with this environment label; may be repeated")
	flags.StringArrayVar(&o.filter.Requesters, "requester", nil, "only this user name, such as system:serviceaccount:ttlab-dev:backend; may be repeated")
	flags.StringSliceVar(&o.filter.Sessions, "session", nil, "only objects of this session; may be repeated")
	flags.StringVar(&o.groupBy, "group-by", "", "print counts alone: by "+strings.Join(denials.Groupings(), ", "))
	flags.IntVar(&o.limit, "limit", denials.DefaultLimit, "list the newest denials, at most so many")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json, csv or html")
	cli.Choices(command, "output", denialsOutputs()...)
	cli.Choices(command, "group-by", denials.Groupings()...)
	cli.Choices(command, "code", codeNames()...)
	cli.NoCompletion(command, "since", "until", "environment", "requester", "session", "limit")
	return command
}

func denialsOutputs() []string { return []string{"table", "json", "csv", "html"} }

func codeNames() []string {
	var names []string
	for _, code := range policy.Codes() {
		names = append(names, string(code))
	}
	return names
}

// complete checks everything that can be checked without reading a log, and gives all faults at once.
func (o *denialsOptions) complete() []error {
	var faults []error
	moment := func(flag, value string) time.Time {
		t, err := cli.ParseMoment(value, o.clock.Now())
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", flag, value, err))
		}
		return t
	}
	o.filter.Since, o.filter.Until = moment("--since", o.since), moment("--until", o.until)
	if len(faults) == 0 && o.until != "" && !o.filter.Since.Before(o.filter.Until) {
		faults = append(faults, fmt.Errorf("--since %s is not before --until %s", o.since, o.until))
	}
	for _, code := range o.filter.Codes {
		if !slices.Contains(policy.Codes(), policy.Code(code)) {
			faults = append(faults, fmt.Errorf("--code %q: none of vmwarden's codes, such as CapVMs; docs/denials.md lists them", code))
		}
	}
	if o.groupBy != "" && !slices.Contains(denials.Groupings(), o.groupBy) {
		faults = append(faults, fmt.Errorf("--group-by %q: use %s", o.groupBy, strings.Join(denials.Groupings(), ", ")))
	}
	if !slices.Contains(denialsOutputs(), o.output) {
		faults = append(faults, fmt.Errorf("--output %q: use table, json, csv or html", o.output))
	} else if o.output == "html" && o.groupBy != "" {
		faults = append(faults, errors.New("--group-by does not go with -o html: the page has all groups"))
	}
	if o.limit < 1 {
		faults = append(faults, fmt.Errorf("--limit %d: must be at least 1", o.limit))
	}
	return faults
}

func (o *denialsOptions) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	collector := denials.NewCollector(o.filter, o.limit)
	progress := cli.ProgressTerminal()
	files := o.files
	if len(files) == 0 {
		files = []string{cli.Stdin}
	}
	var problems []error
	for _, file := range files {
		if err := cli.ReadLog(ctx, collector, file, stdin, progress); err != nil {
			problems = append(problems, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	report := collector.Report()
	cli.NoticeBroken("webhook", stderr, report.Read.Broken)
	notice(stderr, report)
	// The page is written in many small pieces.
	buffered := bufio.NewWriter(stdout)
	problems = append(problems, o.write(buffered, report))
	if err := buffered.Flush(); err != nil {
		problems = append(problems, fmt.Errorf("writing the result: %w", err))
	}
	return errors.Join(problems...)
}

// notice says on stderr what the report cannot be trusted for.
func notice(stderr io.Writer, report denials.Report) {
	read := report.Read
	for _, input := range read.Strange {
		fmt.Fprintf(stderr, "webhook: %s: no line is of kube-apiserver's audit log or of the webhook's own log; see whether it is the right file\n", terminal.Printable(input))
	}
	if len(report.Denials) == 0 {
		fmt.Fprintf(stderr, "webhook: %d lines were read, and no denial that was asked for is in them\n", read.Lines)
	}
	if read.LeftOut > 0 {
		fmt.Fprintf(stderr, "webhook: %d older denials are left out; ask for less, or raise --limit\n", read.LeftOut)
	}
	if !read.RememberedFrom.IsZero() {
		fmt.Fprintf(stderr, "webhook: what became of denials before %s may not be known; ask from then on with --since\n", read.RememberedFrom.UTC().Format(time.RFC3339))
	}
	if len(read.UnknownCodes) > 0 {
		fmt.Fprintf(stderr, "webhook: codes that this version does not have: %q\n", read.UnknownCodes)
	}
}

func (o *denialsOptions) write(out io.Writer, report denials.Report) error {
	switch o.output {
	case "json":
		return report.WriteJSON(out, o.groupBy)
	case "csv":
		return report.WriteCSV(out, o.groupBy)
	case "html":
		return report.WritePage(out, o.filter, o.clock.Now())
	}
	return report.WriteTable(out, o.groupBy)
}
