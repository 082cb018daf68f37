package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttlab/vmwarden/internal/apiclock"
	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
)

// capsTimeout bounds the count.
const capsTimeout = 30 * time.Second

// capsOptions are caps' flags.
type capsOptions struct {
	configFile string
	kubeconfig string
	output     string
}

func newCapsCommand() *cobra.Command {
	var o capsOptions
	command := &cobra.Command{
		Use:   "caps",
		Short: "Print what the caps hold",
		Long: `Counts the places of the VM namespace as an admission decision does, with your own rights, and prints what is used,
what is reserved and what the limits are: of the namespace, of each environment and session, and of the budgets of CPU and memory.
It takes nothing and changes nothing.

Needs list on virtual machines and instances, get on the ConfigMap vmwarden-ledger and, where a budget is set, get on virtual
machines and instances, and on instance types where those are used.

Exit status: 0 when it counted, 1 when it could not, 2 for wrong flags or a wrong configuration.`,
		Example: `  webhook caps --config config.yaml
  webhook caps --config config.yaml -o json | jq '.vms.limit - .vms.used - .vms.reserved'
  webhook caps --config config.yaml --kubeconfig ~/.kube/config`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			s, faults := o.complete()
			if len(faults) > 0 {
				return cli.WrongUse(faults...)
			}
			return o.run(command.Context(), s, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); required")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, or the Pod's ServiceAccount")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	cli.Choices(command, "output", "table", "json")
	return command
}

func (o capsOptions) complete() (settings, []error) {
	var s settings
	var faults []error
	s.config, faults = loadConfig(o.configFile)
	if o.output != "table" && o.output != "json" {
		faults = append(faults, fmt.Errorf("--output %q: use table or json", o.output))
	}
	var err error
	if s.cluster, err = cli.ClusterConfig(o.kubeconfig, "webhook"); err != nil {
		faults = append(faults, err)
	} else {
		s.clock = apiclock.Of(s.cluster)
	}
	if s.log, err = cli.NewLogger("error"); err != nil {
		faults = append(faults, err)
	}
	return s, faults
}

func (o capsOptions) run(ctx context.Context, s settings, out io.Writer) error {
	p, err := newPlaces(s, blind{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, capsTimeout)
	defer cancel()
	tally, err := p.ledger.Survey(ctx)
	if err != nil {
		return fmt.Errorf("counting: %w", err)
	}
	report := policy.NewCapReport(s.config.Contract(), tally)
	if o.output == "table" {
		return report.WriteTable(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// loadConfig loads the file that --config names and gives all its faults.
func loadConfig(path string) (*config.WardenConfig, []error) {
	if path == "" {
		return nil, []error{fmt.Errorf("--config is missing: name the configuration file")}
	}
	loaded, err := config.Load(path)
	if err == nil {
		return loaded, nil
	}
	var faults []error
	for _, fault := range config.Faults(err) {
		faults = append(faults, fmt.Errorf("--config %s: %w", path, fault))
	}
	return nil, faults
}
