package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/internal/apiclock"
	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
)

// options are serve's flags.
type options struct {
	configFile     string
	certificate    certificateOptions
	address        string
	healthAddress  string
	metricsAddress string
	kubeconfig     string
	// leaderElectionNamespace holds the lease; empty for the Pod's own namespace.
	leaderElectionNamespace string
	// shutdownDelay is how long reviews are answered on after SIGTERM, while the word spreads that this replica goes.
	shutdownDelay time.Duration
	logLevel      string
}

// settings is what the flags came to, all of it valid.
type settings struct {
	options
	config   *config.WardenConfig
	messages policy.Messages
	cluster  *rest.Config
	// clock is the API server's, as the clients made from cluster hear it.
	clock *apiclock.Clock
	log   *zap.Logger
}

type runFunc func(context.Context, settings) error

func newServeCommand(run runFunc) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "serve",
		Short: "Answer admission reviews until SIGTERM",
		Long: `Answers mutating and validating admission reviews of virtual machines, until SIGTERM.

The certificate is read from tls.crt and tls.key in --cert-dir, and read again when the files change. Or the webhook makes and
renews it itself, in the Secret --cert-secret, and keeps the caBundle of the webhook configurations in step.
/healthz and /readyz are on --health-address, /metrics on --metrics-address, both without TLS. After SIGTERM /readyz fails at
once, reviews are answered for --shutdown-delay more, and those under way are finished.

Exit status: 0 after SIGTERM, 1 when it could not run, 2 for wrong flags or a wrong configuration.`,
		Example: `  webhook serve --config /etc/vmwarden/config.yaml --cert-dir /etc/vmwarden/tls
  webhook serve --config config.yaml --cert-dir tls --kubeconfig ~/.kube/config --address 127.0.0.1:9443
  webhook serve --config config.yaml --cert-secret vmwarden/vmwarden-webhook-tls --cert-dns-name vmwarden-webhook.vmwarden.svc`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			s, faults := o.complete()
			if len(faults) > 0 {
				return cli.WrongUse(faults...)
			}
			return run(command.Context(), s)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); required")
	o.certificate.add(flags)
	flags.StringVar(&o.address, "address", ":9443", "address on which reviews are answered, over TLS")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080", "address of /metrics")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, or the Pod's ServiceAccount")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease by which one replica writes owner links; without it the Pod's own")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 0, "how long reviews are answered on after SIGTERM: as long as it takes until nobody sends any")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	cli.Choices(command, "log-level", cli.LogLevels()...)
	cli.NoCompletion(command, "address", "health-address", "metrics-address", "leader-election-namespace", "shutdown-delay", "cert-secret", "cert-dns-name", "webhook-configuration")
	return command
}

// complete checks everything that can be checked without the cluster and gives all faults at once.
func (o options) complete() (settings, []error) {
	s := settings{options: o}
	var faults []error
	if s.config, faults = loadConfig(o.configFile); s.config != nil {
		var problems []error
		s.messages, problems = policy.NewMessages(s.config.Messages.Language, s.config.Messages.Templates)
		for _, problem := range problems {
			faults = append(faults, fmt.Errorf("--config %s: messages: %w", o.configFile, problem))
		}
	}
	faults = append(faults, o.certificate.check()...)
	if o.shutdownDelay < 0 {
		faults = append(faults, fmt.Errorf("--shutdown-delay %s: must not be negative", o.shutdownDelay))
	}
	for _, flag := range []struct{ name, value string }{
		{"--address", o.address}, {"--health-address", o.healthAddress}, {"--metrics-address", o.metricsAddress},
	} {
		if err := checkAddress(flag.value); err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", flag.name, flag.value, err))
		}
	}
	var err error
	if s.cluster, err = cli.ClusterConfig(o.kubeconfig, "webhook"); err != nil {
		faults = append(faults, err)
	} else {
		s.clock = apiclock.Of(s.cluster)
	}
	if s.log, err = cli.NewLogger(o.logLevel); err != nil {
		faults = append(faults, err)
	}
	return s, faults
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("not host:port: %w", err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return nil
}
