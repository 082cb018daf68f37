package lab

import (
	"cmp"
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
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
	account  *rest.Config
	balancer *balancer
	// plain: see Options.
	plain bool

	mutex    sync.Mutex
	replicas []*Replica
}

// ReplicaSpec says how a replica runs.
type ReplicaSpec struct {
	// Configuration is the content of its configuration file.
	Configuration string
	// Binary is its program; empty: the lab's.
	Binary string
	// LogFile receives what it writes; empty: a file of the lab's.
	LogFile string
}

// Replica is one process of the webhook.
type Replica struct {
	spec    ReplicaSpec
	process *process.Process
	// Link is what it reaches the API server by.
	Link *Link
	// Address answers reviews, HealthAddress /healthz and /readyz, MetricsAddress /metrics.
	Address, HealthAddress, MetricsAddress string
}

func (l *Lab) startWebhook(ctx context.Context, binary string, options Options) (*Webhook, error) {
	w := &Webhook{lab: l, binary: binary, plain: options.Plain}
	var err error
	if w.account, err = l.ControlPlane.ServiceAccountConfig(ctx, ownNamespace, releaseName+"-webhook"); err != nil {
		return nil, err
	}
	if err := l.ControlPlane.WriteKubeconfig(w.Kubeconfig(), w.account); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.CertificateDir(), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the serving certificate: %w", err)
	}
	if err := l.ControlPlane.ServingCertificate(w.CertificateDir(), "127.0.0.1"); err != nil {
		return nil, err
	}
	if w.balancer, err = newBalancer(w.CertificateDir(), l.ControlPlane.CA()); err != nil {
		return nil, err
	}
	if err := w.Run(ctx, Config, options.Replicas); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, w.Register(ctx)
}

// CertificateDir holds the serving certificate that the API server is told to believe.
func (w *Webhook) CertificateDir() string { return w.path("tls") }

// Kubeconfig is a file by which another process signs in as the replicas do.
func (w *Webhook) Kubeconfig() string { return w.path("webhook.kubeconfig") }

func (w *Webhook) path(name string) string { return filepath.Join(w.lab.group.Directory(), name) }

// Run replaces the replicas by new ones that run with the given configuration file.
func (w *Webhook) Run(ctx context.Context, configuration string, replicas int) error {
	return w.RunMixed(ctx, slices.Repeat([]string{configuration}, replicas)...)
}

// RunMixed replaces the replicas by new ones, one for each configuration: as in the middle of a rollout.
func (w *Webhook) RunMixed(ctx context.Context, configurations ...string) error {
	specs := make([]ReplicaSpec, len(configurations))
	for i, configuration := range configurations {
		specs[i] = ReplicaSpec{Configuration: configuration}
	}
	return w.RunSpecs(ctx, specs...)
}

// RunSpecs replaces the replicas by new ones.
func (w *Webhook) RunSpecs(ctx context.Context, specs ...ReplicaSpec) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.stopAll(); err != nil {
		return err
	}
	for i, spec := range specs {
		replica, err := w.startReplica(ctx, i, spec)
		if err != nil {
			return err
		}
		w.replicas = append(w.replicas, replica)
	}
	w.balance()
	return nil
}

// PauseLinks cuts all replicas off from the API server: connections stay open, and nothing passes, until ResumeLinks.
func (w *Webhook) PauseLinks() {
	for _, replica := range w.Replicas() {
		replica.Link.Pause()
	}
}

// ResumeLinks lets everything pass again.
func (w *Webhook) ResumeLinks() {
	for _, replica := range w.Replicas() {
		replica.Link.Resume()
	}
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
	w.mutex.Lock()
	defer w.mutex.Unlock()
	killed := w.replicas[number]
	if err := killed.stop(0); err != nil {
		return err
	}
	replica, err := w.startReplica(ctx, number, killed.spec)
	if err != nil {
		return err
	}
	w.replicas[number] = replica
	w.balance()
	return nil
}

// PID is the number of the replica's process.
func (r *Replica) PID() int { return r.process.PID() }

// Logs is what a replica has logged.
func (r *Replica) Logs(lines int) string { return r.process.LogTail(lines) }

// stop ends a replica, and its link with it: what it still has to say to the API server while it drains has been said by then.
func (r *Replica) stop(grace time.Duration) error {
	return errors.Join(r.process.Stop(grace), r.Link.close())
}

// startReplica starts a replica and waits until it is ready.
func (w *Webhook) startReplica(ctx context.Context, number int, spec ReplicaSpec) (*Replica, error) {
	replica, err := w.launch(ctx, number, spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return replica, replica.process.AwaitReady(ctx, replica.ready)
}

func (w *Webhook) launch(ctx context.Context, number int, spec ReplicaSpec) (*Replica, error) {
	addresses := make([]string, 3)
	for i := range addresses {
		port, err := process.FreePort()
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	replica := &Replica{spec: spec, Address: addresses[0], HealthAddress: addresses[1], MetricsAddress: addresses[2]}
	configuration, kubeconfig := w.path(fmt.Sprintf("config-%d.yaml", number)), w.path(fmt.Sprintf("webhook-%d.kubeconfig", number))
	if err := os.WriteFile(configuration, []byte(spec.Configuration), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	var err error
	if replica.Link, err = newLink(ctx, strings.TrimPrefix(w.account.Host, "https://")); err != nil {
		return nil, err
	}
	account, logLevel := rest.CopyConfig(w.account), "info"
	if !w.plain {
		// All that is ever logged is searched for what must not be.
		account.Host, logLevel = "https://"+replica.Link.address(), "debug"
	}
	if err := w.lab.ControlPlane.WriteKubeconfig(kubeconfig, account); err != nil {
		return nil, errors.Join(err, replica.Link.close())
	}
	replica.process, err = w.lab.group.Start(ctx, process.Spec{
		Name:    fmt.Sprintf("webhook-%d", number),
		Path:    cmp.Or(spec.Binary, w.binary),
		Env:     append(os.Environ(), w.lab.raceEnvironment()),
		LogFile: spec.LogFile,
		Args: []string{
			"serve", "--config", configuration, "--cert-dir", w.CertificateDir(), "--kubeconfig", kubeconfig,
			"--address", replica.Address, "--health-address", replica.HealthAddress, "--metrics-address", replica.MetricsAddress,
			"--leader-election-namespace", ownNamespace, "--log-level", logLevel,
		},
	})
	if err != nil {
		return nil, errors.Join(err, replica.Link.close())
	}
	return replica, nil
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
func (w *Webhook) Register(ctx context.Context) error { return w.registerAt(ctx, w.balancer.address) }

// RegisterFirst makes the API server ask the first replica itself, with no balancer in between.
func (w *Webhook) RegisterFirst(ctx context.Context) error {
	return w.registerAt(ctx, w.Replicas()[0].Address)
}

func (w *Webhook) registerAt(ctx context.Context, address string) error {
	registrations, err := w.lab.registration(address, w.lab.ControlPlane.CA())
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

// Answers tells, by its error, why a review is not answered as it should be by whoever is asked next.
func (w *Webhook) Answers(ctx context.Context) error {
	stamped, denied, err := w.probe(ctx)
	if stamped && denied {
		return nil
	}
	return fmt.Errorf("stamped: %t, denied: %t: %w", stamped, denied, err)
}

// Disconnect closes the connections to replicas on which nothing is under way.
func (w *Webhook) Disconnect() { w.balancer.transport.CloseIdleConnections() }

// CertificateDirectory holds tls.crt and tls.key of all replicas.
func (w *Webhook) CertificateDirectory() string { return w.path("tls") }

// SetCABundle makes the API server believe the replicas by these authorities.
func (w *Webhook) SetCABundle(ctx context.Context, authorities []byte) error {
	clients, err := w.lab.Clients()
	if err != nil {
		return err
	}
	registrations := clients.AdmissionregistrationV1()
	mutating, err := registrations.MutatingWebhookConfigurations().Get(ctx, releaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the registration: %w", err)
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = authorities
	}
	if _, err := registrations.MutatingWebhookConfigurations().Update(ctx, mutating, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the registration: %w", err)
	}
	validating, err := registrations.ValidatingWebhookConfigurations().Get(ctx, releaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the registration: %w", err)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = authorities
	}
	if _, err := registrations.ValidatingWebhookConfigurations().Update(ctx, validating, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the registration: %w", err)
	}
	return nil
}

// probe asks with a Secret, which is judged and stamped also where no machine has a place.
func (w *Webhook) probe(ctx context.Context) (stamped, denied bool, err error) {
	const environmentLabel = "ttlab.io/env"
	honest, err := backend.Objects(backend.CloudInitSecret, backend.Lesson{Session: "f0000000-0000-4000-8000-000000000000", Environment: "prod"})
	if err != nil {
		return false, false, err
	}
	labels := honest[0].GetLabels()
	delete(labels, environmentLabel)
	honest[0].SetLabels(labels)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	prod := w.lab.Backends["prod"]
	answer, err := prod.CreateObject(ctx, honest[0], dryRun)
	if err == nil {
		stamped = answer.GetLabels()[environmentLabel] == "prod"
	}
	labels[environmentLabel] = "dev"
	honest[0].SetLabels(labels)
	_, falseClaim := prod.CreateObject(ctx, honest[0], dryRun)
	return stamped, apierrors.IsForbidden(falseClaim), errors.Join(err, falseClaim)
}

// Replicas are the running replicas.
func (w *Webhook) Replicas() []*Replica {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.replicas)
}

// Stop ends all replicas, each draining what it is answering. The registration stays: nothing answers the API server then.
func (w *Webhook) Stop() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.stopAll()
}

func (w *Webhook) stopAll() error {
	var problems []error
	for _, replica := range w.replicas {
		problems = append(problems, replica.stop(stopGrace))
	}
	w.replicas = nil
	w.balancer.use(nil)
	return errors.Join(problems...)
}

func (w *Webhook) close() error {
	return errors.Join(w.Stop(), w.balancer.close())
}
