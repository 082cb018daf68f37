// Package lab is a whole lab on one machine, for the demo and the end-to-end tests: a real control plane and PostgreSQL, the
// namespaces and accounts of two environments, and vmwarden's own binaries between them.
package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/postgres"
	"github.com/ttlab/vmwarden/test/process"

	"golang.org/x/sync/errgroup"
)

const (
	// VMNamespace is shared by all environments.
	VMNamespace = "lab-vms"
	// PodNamespace holds the sessions that run as a Pod.
	PodNamespace = "lab-pods"
	// ownNamespace holds vmwarden's own accounts.
	ownNamespace = "vmwarden"
)

// Environments are the environments of the lab. Each has the namespace ttlab-<name> with the ServiceAccounts backend and reaper.
var Environments = []string{"prod", "dev"}

// Config is the configuration file that the lab runs with.
//
//go:embed config.yaml
var Config string

// WebhookAccount is the user that every replica of the webhook is.
const WebhookAccount = "system:serviceaccount:" + ownNamespace + ":" + releaseName + "-webhook"

// ReaperAccount is the user that an environment's reaper is.
func ReaperAccount(environment string) string {
	return "system:serviceaccount:ttlab-" + environment + ":reaper"
}

// Accounts are the users that vmwarden's own processes are. The audit log has all that they ask for.
func Accounts() []string {
	accounts := []string{WebhookAccount}
	for _, environment := range Environments {
		accounts = append(accounts, ReaperAccount(environment))
	}
	return accounts
}

// Lab is a running lab.
type Lab struct {
	ControlPlane *controlplane.ControlPlane
	Postgres     *postgres.Server
	// Admin signs in with the rights of system:masters.
	Admin *rest.Config
	// Backends act for an environment, by its name.
	Backends map[string]*backend.Backend
	// AdminBackend sends what a backend sends, as an admin.
	AdminBackend *backend.Backend
	Webhook      *Webhook

	// rendered is what the chart installs.
	rendered []*unstructured.Unstructured
	group    *process.Group
	reapjob  string
	progress io.Writer
}

// Options change what StartWith starts.
type Options struct {
	// Progress is told what is being built or started; nil: nothing is said.
	Progress io.Writer
	// Replicas of the webhook stand behind one address.
	Replicas int
	// Plain leaves out what tests need and no installation has, for a measurement: the link through which the replicas reach the API
	// server, and their log's debug level.
	Plain bool
	// ControlPlane is what the lab needs of its control plane besides what every lab has.
	ControlPlane controlplane.Options
}

// Start starts a lab with what every lab has.
func Start(ctx context.Context, progress io.Writer, replicas int) (*Lab, error) {
	return StartWith(ctx, Options{Progress: progress, Replicas: replicas})
}

// StartWith brings a lab up: control plane and PostgreSQL at the same time, then namespaces, accounts and rights, the databases
// with their fence, and replicas of the webhook behind one address. The context bounds the start alone.
func StartWith(ctx context.Context, options Options) (*Lab, error) {
	group, err := process.NewGroup("", "vmwarden-lab")
	if err != nil {
		return nil, err
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	l := &Lab{Backends: map[string]*backend.Backend{}, group: group, progress: options.Progress}
	if err := l.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the lab: %w", err), l.Stop())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, options Options) error {
	began := time.Now()
	step := func(format string, arguments ...any) {
		fmt.Fprintf(l.progress, "%6.2fs %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, arguments...))
	}
	var webhookBinary string
	starting, startContext := errgroup.WithContext(ctx)
	starting.Go(func() (err error) {
		wanted := options.ControlPlane
		wanted.Progress = l.progress
		// Some clusters have it on; with it, whoever sets an owner needs the right to delete.
		wanted.AdmissionPlugins = append(slices.Clone(wanted.AdmissionPlugins), "OwnerReferencesPermissionEnforcement")
		wanted.AuditedUsers = append(slices.Clone(wanted.AuditedUsers), Accounts()...)
		l.ControlPlane, err = controlplane.Start(startContext, wanted)
		return err
	})
	starting.Go(func() (err error) {
		l.Postgres, err = postgres.Start(startContext, postgres.Options{Progress: l.progress})
		return err
	})
	starting.Go(func() (err error) {
		if webhookBinary, l.reapjob, err = l.build(startContext); err == nil {
			step("webhook and reapjob are built")
		}
		return err
	})
	starting.Go(func() (err error) {
		if l.rendered, err = renderChart(startContext); err == nil {
			step("the chart is rendered")
		}
		return err
	})
	if err := starting.Wait(); err != nil {
		return err
	}
	l.Admin = l.ControlPlane.AdminConfig()
	if err := l.createNamespaces(ctx); err != nil {
		return err
	}
	if err := l.createBackends(ctx); err != nil {
		return err
	}
	for _, environment := range Environments {
		if err := l.createDatabase(ctx, environment); err != nil {
			return err
		}
	}
	var err error
	if l.Webhook, err = l.startWebhook(ctx, webhookBinary, options); err != nil {
		return err
	}
	step("the webhook is ready, replicas: %d", options.Replicas)
	return nil
}

func (l *Lab) createBackends(ctx context.Context) error {
	for _, environment := range Environments {
		config, err := l.ControlPlane.ServiceAccountConfig(ctx, "ttlab-"+environment, "backend")
		if err != nil {
			return err
		}
		if l.Backends[environment], err = backend.New(environment, config); err != nil {
			return err
		}
	}
	var err error
	l.AdminBackend, err = backend.New("", l.Admin)
	return err
}

// Dir is where the logs of vmwarden's own processes are.
func (l *Lab) Dir() string { return l.group.Directory() }

// Clients gives the admin's typed clients.
func (l *Lab) Clients() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(l.Admin) }

// Stop ends everything and leaves nothing behind. That vmwarden's own processes had a data race is an error, where they were built to find one.
func (l *Lab) Stop() error {
	var problems []error
	if l.Webhook != nil {
		problems = append(problems, l.Webhook.close())
	}
	problems = append(problems, l.races(), l.group.Close())
	if l.Postgres != nil {
		problems = append(problems, l.Postgres.Stop())
	}
	if l.ControlPlane != nil {
		problems = append(problems, l.ControlPlane.Stop())
	}
	return errors.Join(problems...)
}
