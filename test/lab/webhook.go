package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/process"
)

// startTimeout bounds the start of a replica.
const startTimeout = 30 * time.Second

// stopGrace is how long a replica may take to drain.
const stopGrace = 20 * time.Second

// Webhook is a number of replicas behind one address.
type Webhook struct {
	lab      *Lab
	binary   string
	replicas []*Replica
	balancer *balancer
	// Link is what the replicas reach the API server by.
	Link *Link
}

// Replica is one process of the webhook.
type Replica struct {
	process *process.Process
	// Address answers reviews, HealthAddress /healthz and /readyz, MetricsAddress /metrics.
	Address, HealthAddress, MetricsAddress string
}

func (l *Lab) startWebhook(ctx context.Context, binary string, replicas int) (*Webhook, error) {
	w := &Webhook{lab: l, binary: binary}
	account, err := l.ControlPlane.ServiceAccountConfig(ctx, ownNamespace, releaseName+"-webhook")
	if err != nil {
		return nil, err
	}
	if w.Link, err = newLink(ctx, strings.TrimPrefix(account.Host, "https://")); err != nil {
		return nil, err
	}
	account.Host = "https://" + w.Link.address()
	if err := l.ControlPlane.WriteKubeconfig(w.path("webhook.kubeconfig"), account); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.path("tls"), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the serving certificate: %w", err)
	}
	if err := l.ControlPlane.ServingCertificate(w.path("tls"), "127.0.0.1"); err != nil {
		return nil, err
	}
	if w.balancer, err = newBalancer(w.path("tls"), l.ControlPlane.CA()); err != nil {
		return nil, err
	}
	if err := w.Run(ctx, Config, replicas); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, w.Register(ctx)
}

func (w *Webhook) path(name string) string { return filepath.Join(w.lab.group.Directory(), name) }

// Run replaces the replicas by new ones that run with the given configuration file.
func (w *Webhook) Run(ctx context.Context, configuration string, replicas int) error {
	return w.RunMixed(ctx, slices.Repeat([]string{configuration}, replicas)...)
}

// RunMixed replaces the replicas by new ones, one for each configuration: as in the middle of a rollout.
func (w *Webhook) RunMixed(ctx context.Context, configurations ...string) error {
	if err := w.Stop(); err != nil {
		return err
	}
	for i, configuration := range configurations {
		if err := os.WriteFile(w.configuration(i), []byte(configuration), 0o600); err != nil {
			return fmt.Errorf("writing the configuration: %w", err)
		}
		replica, err := w.startReplica(ctx, i)
		if err != nil {
			return err
		}
		w.replicas = append(w.replicas, replica)
	}
	w.balance()
	return nil
}

func (w *Webhook) configuration(replica int) string {
	return w.path(fmt.Sprintf("config-%d.yaml", replica))
}

func (w *Webhook) balance() {
	addresses := make([]string, len(w.replicas))
	for i, replica := range w.replicas {
		addresses[i] = replica.Address
	}
	w.balancer.use(addresses)
}

// Kill ends a replica at once, in the middle of what it is doing, and starts another in its place.
func (w *Webhook) Kill(ctx context.Context, number int) error {
	if err := w.replicas[number].process.Stop(0); err != nil {
		return err
	}
	replica, err := w.startReplica(ctx, number)
	if err != nil {
		return err
	}
	w.replicas[number] = replica
	w.balance()
	return nil
}

// Logs is what a replica has logged.
func (r *Replica) Logs(lines int) string { return r.process.LogTail(lines) }

func (w *Webhook) startReplica(ctx context.Context, number int) (*Replica, error) {
	addresses := make([]string, 3)
	for i := range addresses {
		port, err := process.FreePort()
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	replica := &Replica{Address: addresses[0], HealthAddress: addresses[1], MetricsAddress: addresses[2]}
	var err error
	replica.process, err = w.lab.group.Start(ctx, process.Spec{
		Name: fmt.Sprintf("webhook-%d", number),
		Path: w.binary,
		Args: []string{
			"serve", "--config", w.configuration(number), "--cert-dir", w.path("tls"), "--kubeconfig", w.path("webhook.kubeconfig"),
			"--address", replica.Address, "--health-address", replica.HealthAddress, "--metrics-address", replica.MetricsAddress,
			"--leader-election-namespace", ownNamespace,
			// All that is ever logged is searched for what must not be.
			"--log-level", "debug",
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return replica, replica.process.AwaitReady(ctx, func(ctx context.Context) error {
		return expectOK(ctx, "http://"+replica.HealthAddress+"/readyz")
	})
}

func expectOK(ctx context.Context, url string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// Unregister takes our configurations from the API server, as if vmwarden were not installed, and waits until it asks nobody.
func (w *Webhook) Unregister(ctx context.Context) error {
	clients, err := w.lab.Clients()
	if err != nil {
		return err
	}
	registrations := clients.AdmissionregistrationV1()
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		registrations.MutatingWebhookConfigurations().Delete, registrations.ValidatingWebhookConfigurations().Delete,
	} {
		if err := remove(ctx, releaseName, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("taking the registration away: %w", err)
		}
	}
	return w.await(ctx, "the webhook to lose its effect", func(stamped, denied bool) bool { return !stamped && !denied })
}

// Register makes the API server ask the replicas, by what the chart registers.
func (w *Webhook) Register(ctx context.Context) error {
	registrations, err := w.lab.registration(w.balancer.address, w.lab.ControlPlane.CA())
	if err != nil {
		return err
	}
	for _, registration := range registrations {
		if _, err := w.lab.AdminBackend.CreateObject(ctx, registration, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("registering the webhook: %w", err)
		}
	}
	return w.await(ctx, "the webhook to take effect", func(stamped, denied bool) bool { return stamped && denied })
}

// await waits until the API server asks the webhook, or does not any more: a configuration reaches its admission chain by a watch.
// The mutating one is at work when a dry run comes back stamped, the validating one when a false claim is denied.
func (w *Webhook) await(ctx context.Context, what string, reached func(stamped, denied bool) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		stamped, denied, err := w.probe(ctx)
		if reached(stamped, denied) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s (mutating: %t, validating: %t, last answer: %w)", what, stamped, denied, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *Webhook) probe(ctx context.Context) (stamped, denied bool, err error) {
	honest, err := backend.Objects(backend.VMContainerDisk, backend.Lesson{Session: "f0000000-0000-4000-8000-000000000000", Environment: "prod"})
	if err != nil {
		return false, false, err
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	prod := w.lab.Backends["prod"]
	answer, err := prod.CreateObject(ctx, honest[0], dryRun)
	if err == nil {
		_, stamped = answer.GetAnnotations()[lab.DeadlineAnnotation]
	}
	honest[0].SetLabels(map[string]string{"ttlab.io/env": "dev"})
	_, falseClaim := prod.CreateObject(ctx, honest[0], dryRun)
	return stamped, apierrors.IsForbidden(falseClaim), errors.Join(err, falseClaim)
}

// Replicas are the running replicas.
func (w *Webhook) Replicas() []*Replica { return w.replicas }

// Stop ends all replicas, each draining what it is answering. The registration stays: nothing answers the API server then.
func (w *Webhook) Stop() error {
	var problems []error
	for _, replica := range w.replicas {
		problems = append(problems, replica.process.Stop(stopGrace))
	}
	w.replicas = nil
	w.balancer.use(nil)
	return errors.Join(problems...)
}

func (w *Webhook) close() error {
	return errors.Join(w.Stop(), w.balancer.close(), w.Link.close())
}
