package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/observe"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/internal/policy/ownerlink"
	"github.com/ttlab/vmwarden/internal/version"
)

// gracefulShutdown is how long reviews under way may take after SIGTERM: longer than any review lasts.
const gracefulShutdown = 15 * time.Second

// serve wires the webhook together and runs it. It holds no rule.
func serve(ctx context.Context, s settings) error {
	s.log.Info("starting", zap.String("version", version.String()), zap.Any("configuration", s.config))
	if s.config.Caps.Reservation.Duration < apiServerRequestTimeout {
		s.log.Warn("caps.reservation is shorter than kube-apiserver's default request time-out; a create that takes longer could be one too many, and then the ResourceQuota alone stops it",
			zap.Duration("reservation", s.config.Caps.Reservation.Duration), zap.Duration("requestTimeout", apiServerRequestTimeout))
	}
	server, err := newWebhookServer(s)
	if err != nil {
		return err
	}
	contract := s.config.Contract()
	scheme := runtime.NewScheme()
	if err := ownerlink.AddToScheme(scheme); err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	cacheOptions, err := ownerlink.CacheOptions(contract)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(s.cluster, ctrl.Options{
		Logger: zapr.NewLogger(s.log),
		Scheme: scheme,
		Cache:  cacheOptions,
		// Every replica answers reviews; the leader alone writes owner links and tells of the passes.
		LeaderElection:          true,
		LeaderElectionID:        "vmwarden-webhook",
		LeaderElectionNamespace: s.leaderElectionNamespace,
		// A replica that stops hands over at once, instead of letting the lease run out.
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: s.metricsAddress},
		HealthProbeBindAddress:        s.healthAddress,
		WebhookServer:                 server,
		GracefulShutdownTimeout:       new(gracefulShutdown),
	})
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return fmt.Errorf("making the metadata client: %w", err)
	}
	witness, err := ledger.NewWatchWitness(metadataClient, s.config.VMNamespace, s.config.Caps.Reservation.Duration, clock.RealClock{})
	if err != nil {
		return err
	}
	p, err := newPlaces(s, witness)
	if err != nil {
		return err
	}
	capMetrics := policy.NewCapMetrics(s.config.Contract(), metrics.Registry)
	p.ledger.Observer = capMetrics
	runnables := []manager.Runnable{witness, &recount{places: p.ledger, metrics: capMetrics, log: s.log}}
	if p.needs != nil {
		runnables = append(runnables, p.needs)
	}
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding a watch to the manager: %w", err)
		}
	}
	// Asking the manager for its server is what makes the manager run it.
	if err := ownerlink.SetUp(mgr, contract); err != nil {
		return err
	}
	err = observe.SetUp(mgr, observe.Options{
		Contract: contract, Registry: metrics.Registry, Certificate: servedCertificate(ctx, s.address), Clock: clock.RealClock{}, Log: s.log,
	})
	if err != nil {
		return err
	}
	register(mgr.GetWebhookServer(), s, p, capMetrics, metadataClient, mgr.GetEventRecorderFor("vmwarden"))
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /healthz: %w", err)
	}
	// Ready means that the certificate is loaded and the listener answers.
	if err := mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("adding /readyz: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

// apiServerRequestTimeout is the default of kube-apiserver's --request-timeout.
const apiServerRequestTimeout = time.Minute

func newWebhookServer(s settings) (webhook.Server, error) {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, fmt.Errorf("reading --address: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("reading --address: %w", err)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: number, CertDir: s.certificateDir}), nil
}

func register(server webhook.Server, s settings, p places, capMetrics *policy.CapMetrics, metadataClient metadata.Interface, events record.EventRecorder) {
	contract := s.config.Contract()
	surroundings := &policy.MetadataSurroundings{Client: metadataClient, Contract: contract}
	var requests policy.Requests
	if p.needs != nil {
		requests = p.needs.Requests
	}
	server.Register(policy.MutatePath, &webhook.Admission{Handler: &policy.Mutator{
		Contract: contract, Groups: surroundings, Clock: clock.RealClock{}, Log: s.log,
	}})
	server.Register(policy.ValidatePath, &webhook.Admission{Handler: &policy.Validator{
		Contract:           contract,
		Places:             p.ledger,
		Surroundings:       surroundings,
		Requests:           requests,
		AllowWhenUncertain: s.config.Caps.WhenUncertain == config.AllowWhenUncertain,
		Messages:           s.messages,
		Clock:              clock.RealClock{},
		Log:                s.log,
		Metrics:            policy.NewMetrics(metrics.Registry),
		Events:             events,
		CapMetrics:         capMetrics,
	}})
}
