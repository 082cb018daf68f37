// Command reapjob makes an environment's virtual machines and its sessions table agree again, one pass a run.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/version"
)

func main() {
	os.Exit(cli.Run(newCommand(commands{run: runPass, plan: printPlan, status: printStatus}), os.Args[1:], os.Stderr))
}

// commands are what the subcommands do with valid options, handed in so that tests need no cluster.
type commands struct {
	run, plan, status runFunc
}

func newCommand(c commands) *cobra.Command {
	root := &cobra.Command{
		Use:   "reapjob",
		Short: "Reclaims expired, orphaned and lost lab virtual machines of one environment",
		Long: `Reclaims expired, orphaned and lost lab virtual machines of one environment, one pass a run: run is what the environment's CronJob starts
every minute. Begin with plan, which prints what run would do and why, and does nothing. Each has examples: reapjob COMMAND --help.`,
		Version: version.String(),
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.Group,
	}
	root.AddCommand(newRunCommand(c.run), newPlanCommand(c.plan), newStatusCommand(c.status))
	cli.AddCommon(root)
	return root
}
