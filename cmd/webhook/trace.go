package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/internal/apiclock"
	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/trace"
)

// exitNoTrace is trace's exit status where everything was read and nothing found.
const exitNoTrace = 3

// traceRounds bounds how often files are read: names are learned in a chain, session, machine, Secret.
const traceRounds = 4

// traceOptions are trace's flags and arguments.
type traceOptions struct {
	configFile, kubeconfig, output string
	offline                        bool
	asked                          string
	files                          []string
}

// traceSettings is what the flags came to.
type traceSettings struct {
	// config is nil where none was named.
	config *config.WardenConfig
	// cluster is nil where none is asked; clock is its API server's, as the clients made from it hear it.
	cluster *rest.Config
	clock   *apiclock.Clock
	labels  lab.Labels
}

func newTraceCommand() *cobra.Command {
	var o traceOptions
	command := &cobra.Command{
		Use:   "trace SESSION|VM [FILE…]",
		Short: "Tell the life of a session's virtual machines as one time line",
		Long: `Tells the life of a virtual machine, or of all of a session's, as one time line: who created it and what was stamped, what was denied,
who changed it, when it is due, why it was reaped, who asked for its deletion, when it was gone. Every line names its source, and what
none of the sources can tell is said. A name that was used again has several lives, told apart by UID.

Logs are FILEs, gzipped or not, in any order: kube-apiserver's audit logs, the webhook's own and reapjob's. They are read again where a
name was learned from them; - is stdin, which is read once. With --config the cluster is asked too, with your own rights: get and list on
virtual machines, list on Events, get on the ConfigMaps vmwarden-status-ENVIRONMENT. With --offline it is not, and the configuration tells
only labels, accounts and lifetimes. Without FILE and without --config stdin is read.

Exit status: 0 when something was found (lines that could not be read change nothing), 1 when a file or a part of the cluster could not
be read (what the others tell is printed all the same), 2 for wrong use, 3 when everything was read and nothing found.`,
		Example: `  webhook trace lab-a0000000 audit.log
  webhook trace a0000000-0000-4000-8000-000000000001 --config config.yaml audit*.log.gz audit.log webhook-*.log
  webhook trace lab-a0000000 --config config.yaml -o json | jq -r '.timeline[] | [.time, .source, .what] | @tsv'
  webhook trace lab-a0000000 --config config.yaml --offline audit.log
  zcat audit-1.log.gz | webhook trace lab-a0000000 -`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(arguments) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			s, faults := o.complete(arguments)
			if len(faults) > 0 {
				return cli.WrongUse(faults...)
			}
			return o.run(command.Context(), s, command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); with it the cluster is asked too")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, or the Pod's ServiceAccount")
	flags.BoolVar(&o.offline, "offline", false, "ask no cluster, also with --config")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	cli.Choices(command, "output", "table", "json")
	return command
}

// complete checks everything that can be checked without reading a log or asking the cluster, and gives all faults at once.
func (o *traceOptions) complete(arguments []string) (traceSettings, []error) {
	s := traceSettings{labels: config.DefaultLabels()}
	var faults []error
	if len(arguments) == 0 || arguments[0] == "" {
		faults = append(faults, errors.New("name a session or a virtual machine, such as lab-a0000000, and then the logs"))
	} else {
		o.asked, o.files = arguments[0], arguments[1:]
	}
	if o.output != "table" && o.output != "json" {
		faults = append(faults, fmt.Errorf("--output %q: use table or json", o.output))
	}
	if o.kubeconfig != "" && (o.configFile == "" || o.offline) {
		faults = append(faults, errors.New("--kubeconfig: the cluster is asked with --config, which says where its virtual machines are, and without --offline"))
	}
	if o.configFile != "" {
		var problems []error
		s.config, problems = loadConfig(o.configFile)
		faults = append(faults, problems...)
	}
	if s.config == nil {
		if len(o.files) == 0 {
			o.files = []string{cli.Stdin}
		}
		return s, faults
	}
	s.labels = s.config.Contract().Labels
	if o.offline {
		if len(o.files) == 0 {
			o.files = []string{cli.Stdin}
		}
		return s, faults
	}
	var err error
	if s.cluster, err = cli.ClusterConfig(o.kubeconfig, "webhook"); err != nil {
		faults = append(faults, fmt.Errorf("%w; to read files alone, say --offline", err))
	} else {
		s.clock = apiclock.Of(s.cluster)
	}
	if _, err := cli.NewLogger("error"); err != nil {
		faults = append(faults, err)
	}
	return s, faults
}

func (s traceSettings) options() trace.Options {
	options := trace.Options{Labels: s.labels}
	if s.config != nil {
		contract := s.config.Contract()
		options.Identities, options.Lifetimes = contract.Identities, contract.Lifetimes
	}
	return options
}

func (o *traceOptions) run(ctx context.Context, s traceSettings, stdin io.Reader, stdout, stderr io.Writer) error {
	collector := trace.NewCollector(o.asked, s.options())
	var problems []error
	var cluster *tracedCluster
	if s.cluster != nil {
		var err error
		if cluster, err = newTracedCluster(s); err != nil {
			return err
		}
		problems = append(problems, cluster.find(ctx, o.asked))
		collector.Learn(cluster.facts.Machines)
	}
	problems = append(problems, o.read(ctx, collector, stdin))
	if cluster != nil {
		problems = append(problems, cluster.complete(ctx, collector.MachineNames()))
		collector.Add(cluster.facts)
	}
	report := collector.Report()
	cli.NoticeBroken("webhook", stderr, report.Read.Broken)
	failed := errors.Join(problems...)
	if !report.Found() {
		if s.cluster == nil && report.Read.Lines == 0 && failed != nil {
			// Nothing was searched.
			return failed
		}
		return errors.Join(failed, o.nothing(s, report.Read, failed != nil))
	}
	return errors.Join(failed, o.write(stdout, report))
}

// read reads the files, and again where a name was learned: what came before may hold more of it.
func (o *traceOptions) read(ctx context.Context, collector *trace.Collector, stdin io.Reader) error {
	terminal := cli.ProgressTerminal()
	fromStdin := slices.Contains(o.files, cli.Stdin)
	for round := 1; ; round++ {
		learned := collector.Learned()
		var problems []error
		for _, file := range o.files {
			if err := cli.ReadLog(ctx, collector, file, stdin, terminal); err != nil {
				problems = append(problems, err)
			}
			if ctx.Err() != nil {
				return errors.Join(problems...)
			}
		}
		if collector.Learned() == learned || round == traceRounds || fromStdin {
			if fromStdin && collector.Learned() > learned {
				collector.Once()
			}
			return errors.Join(problems...)
		}
		collector.Again()
	}
}

// nothing says what was searched.
func (o *traceOptions) nothing(s traceSettings, read trace.Reading, failed bool) error {
	var searched []string
	if len(read.Inputs) > 0 {
		searched = append(searched, fmt.Sprintf("%s (%d lines)", strings.Join(read.Inputs, ", "), read.Lines))
	}
	if s.cluster != nil {
		searched = append(searched, fmt.Sprintf("the cluster (virtual machines and Events of namespace %s, passes of %s)",
			s.config.VMNamespace, strings.Join(s.config.Contract().Environments, ", ")))
	}
	err := fmt.Errorf("no trace of %q, neither as a session nor as a virtual machine, in %s; see whether the name is whole and the logs reach back to its time",
		o.asked, strings.Join(searched, " and in "))
	if failed {
		return err
	}
	return &cli.StatusError{Status: exitNoTrace, Err: err}
}

func (o *traceOptions) write(stdout io.Writer, report trace.Report) error {
	var page bytes.Buffer
	write := report.WriteTable
	if o.output == "json" {
		write = report.WriteJSON
	}
	if err := write(&page); err != nil {
		return err
	}
	if _, err := page.WriteTo(stdout); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// traceTimeout bounds what the cluster is asked before, and after, the logs are read.
const traceTimeout = 30 * time.Second
