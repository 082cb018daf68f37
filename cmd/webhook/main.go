// Command webhook guards the virtual machines of a namespace at kube-apiserver.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/version"
)

func main() {
	os.Exit(cli.Run(newCommand(serve), os.Args[1:], os.Stderr))
}

// newCommand makes the command line; run is what serve does with valid options, handed in so that tests need no server.
func newCommand(run runFunc) *cobra.Command {
	root := &cobra.Command{
		Use:   "webhook",
		Short: "Guards the virtual machines of a KubeVirt namespace at kube-apiserver",
		Long: `Guards the virtual machines of a KubeVirt namespace at kube-apiserver: serve is what runs in the cluster. All else is for people.
check and denials need no cluster, and neither does trace where it is given logs; caps asks one. Each has examples: webhook COMMAND --help.`,
		Version: version.String(),
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.Group,
	}
	root.AddCommand(newServeCommand(run), newCheckCommand(), newCapsCommand(), newDenialsCommand(), newTraceCommand())
	cli.AddCommon(root)
	return root
}
