package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/apiclock"
	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/reap"
)

// options are the flags that all subcommands share.
type options struct {
	configFile      string
	environment     string
	databaseURLFile string
	kubeconfig      string
	output          string
	logLevel        string
	releaseBrakes   []string
	terminationLog  string
	// ofStatus is true for the command that shows passes: it needs no database, writes pages too, and reads logs for them.
	ofStatus bool
	since    string
	logs     []string
}

// settings is what the flags came to, all of it valid.
type settings struct {
	config      *config.WardenConfig
	environment config.Environment
	// databaseURL is empty where the PG* variables say everything. It holds a password and is never printed.
	databaseURL string
	released    []reap.BrakeName
	cluster     *rest.Config
	// clock is the API server's, as the clients made from cluster hear it.
	clock *apiclock.Clock
	json  bool
	// html is status's alone: a page of the passes since a time, from logs too.
	html  bool
	since time.Time
	logs  []string
	// terminationLog is the file for the container's termination message; empty, or one that is not there: none is written.
	terminationLog string
	log            *zap.Logger
	stdin          io.Reader
	stdout         io.Writer
	stderr         io.Writer
	// progress, if set, is a terminal that wants to be told how far a pass is.
	progress io.Writer
}

type runFunc func(context.Context, settings) error

func (o *options) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); required")
	flags.StringVar(&o.environment, "environment", "", "environment whose sessions and objects are looked at; required")
	if !o.ofStatus {
		flags.StringVar(&o.databaseURLFile, "database-url-file", "", "file with the database's URL; without it DATABASE_URL, or the PG* variables")
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, or the Pod's ServiceAccount")
	flags.StringVarP(&o.output, "output", "o", "table", strings.Join(o.outputs(), ", "))
	flags.StringVar(&o.logLevel, "log-level", "", "debug, info, warn or error (default info, on a terminal warn)")
	cli.Choices(command, "output", o.outputs()...)
	cli.Choices(command, "log-level", cli.LogLevels()...)
	cli.CompleteFrom(command, "environment", environmentNames)
}

// environmentNames are those of the configuration that the command line names.
func environmentNames(command *cobra.Command) []string {
	path, err := command.Flags().GetString("config")
	if err != nil {
		return nil
	}
	loaded, err := config.Load(path)
	if err != nil {
		return nil
	}
	return loaded.Contract().Environments
}

// outputs are the forms in which the command writes.
func (o *options) outputs() []string {
	if o.ofStatus {
		return []string{"table", "json", "html"}
	}
	return []string{"table", "json"}
}

const databaseHelp = `The database is named by DATABASE_URL, by the standard PG* variables, or by --database-url-file.`

func newRunCommand(run runFunc) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "run",
		Short: "Run one pass",
		Long: `Runs one pass: deletes what is past its deadline, expired or orphaned, and ends rows whose virtual machine is gone.
What was done goes to stdout, the log to stderr; a summary goes to the container's termination message, to Events and to the
environment's status ConfigMap, which 'reapjob status' prints. SIGTERM lets the items at hand finish and begins no other.
` + databaseHelp + `

Exit status:
  0  clean; where another pass was at work, deadlines alone were looked at
  1  could not run, or something could not be read and its directions were not gone in
  2  wrong flags or a wrong configuration
  3  some items failed; the next pass tries them again
  4  a brake or the fence held a direction back
A report that cannot be written is logged and changes none of these.`,
		Example: `  reapjob run --config /etc/vmwarden/config.yaml --environment prod
  reapjob run --config config.yaml --environment dev --release-brake=orphan -o json`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.runE(run),
	}
	o.add(command)
	command.Flags().StringVar(&o.terminationLog, "termination-log", "/dev/termination-log", "file for the container's termination message; nothing is written where there is none")
	command.Flags().StringSliceVar(&o.releaseBrakes, "release-brake", nil, "let this one pass through a brake: orphan, ghost or clock; may be repeated")
	var brakes []string
	for _, name := range reap.BrakeNames() {
		brakes = append(brakes, string(name))
	}
	cli.Choices(command, "release-brake", brakes...)
	return command
}

func newPlanCommand(plan runFunc) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what run would do, and why, and do nothing",
		Long: `Shows what run would do this moment, and why. Deletes and writes nothing, and needs no rights to.
` + databaseHelp + `

Exit status: 0 when a plan was made, 1 when it could not be, 2 for wrong flags or a wrong configuration,
4 when a brake or the fence would hold a direction back.`,
		Example: `  reapjob plan --config /etc/vmwarden/config.yaml --environment prod
  reapjob plan --config config.yaml --environment dev -o json`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.runE(plan),
	}
	o.add(command)
	return command
}

func newStatusCommand(show runFunc) *cobra.Command {
	o := options{ofStatus: true}
	command := &cobra.Command{
		Use:   "status [LOG…]",
		Short: "Show the last passes",
		Long: `Shows an environment's last passes, the newest first, and what was wrong with the last one, from the status ConfigMap in
the VM namespace.

With -o html it writes one page that loads nothing: numbers, the list of passes with a search, times without a pass. The ConfigMap keeps
the last 30 passes, half an hour of one a minute. For a longer time name LOGs of reapjob, gzipped or not, - for stdin: the passes that they
tell of are added, each once; other environments' are left out.

Exit status: that of the last pass (0, 1, 3 or 4; see 'reapjob run --help'); 1 also when no pass has ever run or the status
cannot be read, or a LOG; 2 for wrong flags or a wrong configuration.`,
		Example: `  reapjob status --config /etc/vmwarden/config.yaml --environment prod
  reapjob status --config config.yaml --environment dev -o json
  reapjob status --config config.yaml --environment prod -o html > passes.html
  reapjob status --config config.yaml --environment prod -o html --since 24h reapjob-*.log.gz reapjob.log > passes.html`,
		Args: cobra.ArbitraryArgs,
		RunE: o.runE(show),
	}
	command.Flags().StringVar(&o.since, "since", "", "with -o html: passes from when on, how long ago, such as 24h or 7d, or a time such as 2026-11-29T15:00:00Z; without it all")
	cli.NoCompletion(command, "since")
	o.add(command)
	return command
}

func (o *options) runE(run runFunc) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		// Only status takes any.
		o.logs = arguments
		s, faults := o.complete()
		if len(faults) > 0 {
			return cli.WrongUse(faults...)
		}
		s.stdin, s.stdout, s.stderr = command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr()
		return run(command.Context(), s)
	}
}

// complete checks everything that can be checked without cluster and database, and gives all faults at once.
func (o *options) complete() (settings, []error) {
	s := settings{json: o.output == "json", terminationLog: o.terminationLog}
	var faults []error
	if !slices.Contains(o.outputs(), o.output) {
		faults = append(faults, fmt.Errorf("--output %q: use %s", o.output, strings.Join(o.outputs(), ", ")))
	}
	faults = append(faults, o.completePage(&s)...)
	for _, name := range o.releaseBrakes {
		if !slices.Contains(reap.BrakeNames(), reap.BrakeName(name)) {
			faults = append(faults, fmt.Errorf("--release-brake %q: use orphan, ghost or clock", name))
		}
		s.released = append(s.released, reap.BrakeName(name))
	}
	if o.configFile == "" {
		faults = append(faults, fmt.Errorf("--config is missing: name the configuration file"))
	} else if loaded, err := config.Load(o.configFile); err != nil {
		for _, fault := range config.Faults(err) {
			faults = append(faults, fmt.Errorf("--config %s: %w", o.configFile, fault))
		}
	} else {
		s.config = loaded
	}
	faults = append(faults, o.completeEnvironment(&s)...)
	var err error
	if s.cluster, err = cli.ClusterConfig(o.kubeconfig, "reapjob"); err != nil {
		faults = append(faults, err)
	} else {
		s.clock = apiclock.Of(s.cluster)
	}
	level := o.logLevel
	if terminal := term.IsTerminal(int(os.Stderr.Fd())); terminal {
		s.progress = os.Stderr
		if level == "" {
			level = "warn"
		}
	} else if level == "" {
		level = "info"
	}
	if s.log, err = cli.NewLogger(level); err != nil {
		faults = append(faults, err)
	}
	return s, faults
}

// completePage checks what goes with -o html.
func (o *options) completePage(s *settings) []error {
	s.html, s.logs = o.output == "html", o.logs
	var faults []error
	if !s.html && len(o.logs) > 0 {
		faults = append(faults, fmt.Errorf("%q is not understood: logs go with -o html", o.logs[0]))
	}
	if !s.html && o.since != "" {
		faults = append(faults, fmt.Errorf("--since goes with -o html"))
	}
	var err error
	if s.since, err = cli.ParseMoment(o.since, clock.RealClock{}.Now()); err != nil {
		faults = append(faults, fmt.Errorf("--since %q: %w", o.since, err))
	}
	return faults
}

func (o *options) completeEnvironment(s *settings) []error {
	if s.config == nil {
		if o.environment == "" {
			return []error{fmt.Errorf("--environment is missing: name one of the configuration's environments")}
		}
		return nil
	}
	if o.environment == "" {
		return []error{fmt.Errorf("--environment is missing: name one of %s", strings.Join(s.config.Contract().Environments, ", "))}
	}
	var found bool
	if s.environment, found = s.config.Environment(o.environment); !found {
		return []error{fmt.Errorf("--environment %q: the configuration has only %s", o.environment, strings.Join(s.config.Contract().Environments, ", "))}
	}
	if o.ofStatus || !*s.environment.SessionsDatabase {
		return nil
	}
	var err error
	if s.databaseURL, err = databaseURL(o.databaseURLFile); err != nil {
		return []error{err}
	}
	return nil
}

// databaseURL finds the database's URL, and checks how it is written. An empty one is right where the PG* variables name a database.
func databaseURL(file string) (string, error) {
	source, url, err := findDatabaseURL(file)
	if err != nil {
		return "", err
	}
	if err := reap.CheckDatabaseURL(url); err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return url, nil
}

func findDatabaseURL(file string) (source, url string, err error) {
	if file != "" {
		source = "--database-url-file " + file
		content, err := os.ReadFile(file)
		if err != nil {
			return "", "", cli.FileError(source, err)
		}
		if url = strings.TrimSpace(string(content)); url == "" {
			return "", "", fmt.Errorf("%s is empty: write the database's URL into it", source)
		}
		return source, url, nil
	}
	if url = os.Getenv("DATABASE_URL"); url != "" {
		return "DATABASE_URL", url, nil
	}
	for _, variable := range []string{"PGHOST", "PGDATABASE", "PGSERVICE"} {
		if os.Getenv(variable) != "" {
			return "the PG* variables", "", nil
		}
	}
	return "", "", fmt.Errorf("no database is named: set DATABASE_URL (or PGHOST and PGDATABASE), or name a file with --database-url-file")
}
