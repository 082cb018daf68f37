package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"golang.org/x/term"
	"k8s.io/client-go/rest"

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
	// withoutDatabase is true for a command that reads the cluster alone.
	withoutDatabase bool
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
	// terminationLog is the file for the container's termination message; empty, or one that is not there: none is written.
	terminationLog string
	log            *zap.Logger
	stdout         io.Writer
	// progress, if set, is a terminal that wants to be told how far a pass is.
	progress io.Writer
}

type runFunc func(context.Context, settings) error

func (o *options) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); required")
	flags.StringVar(&o.environment, "environment", "", "environment whose sessions and objects are looked at; required")
	if !o.withoutDatabase {
		flags.StringVar(&o.databaseURLFile, "database-url-file", "", "file with the database's URL; without it DATABASE_URL, or the PG* variables")
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, or the Pod's ServiceAccount")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.StringVar(&o.logLevel, "log-level", "", "debug, info, warn or error (default info, on a terminal warn)")
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
		Args: cli.NoArguments,
		RunE: o.runE(run),
	}
	o.add(command.Flags())
	command.Flags().StringVar(&o.terminationLog, "termination-log", "/dev/termination-log", "file for the container's termination message; nothing is written where there is none")
	command.Flags().StringSliceVar(&o.releaseBrakes, "release-brake", nil, "let this one pass through a brake: orphan, ghost or clock; may be repeated")
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
		Args: cli.NoArguments,
		RunE: o.runE(plan),
	}
	o.add(command.Flags())
	return command
}

func newStatusCommand(show runFunc) *cobra.Command {
	o := options{withoutDatabase: true}
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the last passes",
		Long: `Shows an environment's last passes, the newest first, and what was wrong with the last one, from the status ConfigMap in
the VM namespace.

Exit status: that of the last pass (0, 1, 3 or 4; see 'reapjob run --help'); 1 also when no pass has ever run or the status
cannot be read; 2 for wrong flags or a wrong configuration.`,
		Example: `  reapjob status --config /etc/vmwarden/config.yaml --environment prod
  reapjob status --config config.yaml --environment dev -o json`,
		Args: cli.NoArguments,
		RunE: o.runE(show),
	}
	o.add(command.Flags())
	return command
}

func (o *options) runE(run runFunc) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		s, faults := o.complete()
		if len(faults) > 0 {
			return cli.WrongUse(faults...)
		}
		s.stdout = command.OutOrStdout()
		return run(command.Context(), s)
	}
}

// complete checks everything that can be checked without cluster and database, and gives all faults at once.
func (o *options) complete() (settings, []error) {
	s := settings{json: o.output == "json", terminationLog: o.terminationLog}
	var faults []error
	if o.output != "table" && o.output != "json" {
		faults = append(faults, fmt.Errorf("--output %q: use table or json", o.output))
	}
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

func (o *options) completeEnvironment(s *settings) []error {
	if o.environment == "" {
		return []error{fmt.Errorf("--environment is missing: name one of the configuration's environments")}
	}
	if s.config == nil {
		return nil
	}
	var found bool
	if s.environment, found = s.config.Environment(o.environment); !found {
		return []error{fmt.Errorf("--environment %q: the configuration has only %s", o.environment, strings.Join(s.config.Contract().Environments, ", "))}
	}
	if o.withoutDatabase || !*s.environment.SessionsDatabase {
		return nil
	}
	var err error
	if s.databaseURL, err = databaseURL(o.databaseURLFile); err != nil {
		return []error{err}
	}
	return nil
}

// databaseURL finds the database's URL. An empty one is right where the PG* variables name a database.
func databaseURL(file string) (string, error) {
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("--database-url-file: %w", err)
		}
		if url := strings.TrimSpace(string(content)); url != "" {
			return url, nil
		}
		return "", fmt.Errorf("--database-url-file %s is empty: write the database's URL into it", file)
	}
	if url := os.Getenv("DATABASE_URL"); url != "" {
		return url, nil
	}
	for _, variable := range []string{"PGHOST", "PGDATABASE", "PGSERVICE"} {
		if os.Getenv(variable) != "" {
			return "", nil
		}
	}
	return "", fmt.Errorf("no database is named: set DATABASE_URL (or PGHOST and PGDATABASE), or name a file with --database-url-file")
}
