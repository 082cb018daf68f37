package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ttlab/vmwarden/internal/certificate"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/observe"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/internal/policy/ownerlink"
	"github.com/ttlab/vmwarden/internal/version"
)

// gracefulShutdown is how long reviews under way may take after SIGTERM: longer than any review lasts.
const gracefulShutdown = 15 * time.Second

// gcPercent is how much the heap may grow before it is collected, in hundredths of what is alive: what is alive are watches, which last,
// and a review leaves little behind, so more would be memory for nothing. GOGC has the last word.
const gcPercent = 50

// serve wires the webhook together and runs it. It holds no rule.
func serve(ctx context.Context, s settings) error {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	s.log.Info("starting", zap.String("version", version.String()), zap.Any("configuration", s.config))
	if s.config.Caps.Reservation.Duration < apiServerRequestTimeout {
		s.log.Warn("caps.reservation is shorter than kube-apiserver's default request time-out; a create that takes longer could be one too many, and then the ResourceQuota alone stops it",
			zap.Duration("reservation", s.config.Caps.Reservation.Duration), zap.Duration("requestTimeout", apiServerRequestTimeout))
	}
	if s.config.Mode == config.Audit {
		s.log.Warn("mode is Audit: everything is admitted, and what would be denied is reported")
	}
	var source certificate.Source
	server, err := newWebhookServer(s, func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return source.GetCertificate(hello) })
	if err != nil {
		return err
	}
	mgr, err := newManager(s, server)
	if err != nil {
		return err
	}
	if source, err = newCertificateSource(mgr, s); err != nil {
		return err
	}
	if err := addAdmission(mgr, s); err != nil {
		return err
	}
	if s.config.Mode == config.Enforce {
		if err := ownerlink.SetUp(mgr, s.config.Contract()); err != nil {
			return err
		}
	}
	if err := observe.SetUp(mgr, observe.Options{
		Contract: s.config.Contract(), Registry: metrics.Registry, Clock: s.clock, Log: s.log,
		Certificate: func() (time.Time, bool) { return certificate.NotAfter(source) },
	}); err != nil {
		return err
	}
	serving, stop := leavingFirst(ctx, s.shutdownDelay)
	defer stop()
	if err := addProbes(mgr, map[string]healthz.Checker{
		// Ready means that a certificate is loaded that holds, that the listener answers, that it can decide, and that it is to go on
		// doing so.
		"certificate": certificate.Check(source, s.clock), "webhook": server.StartedChecker(), "api-server": hearing(s.clock.Silence, s.config.Caps.WhenUncertain), "staying": staying(ctx),
	}); err != nil {
		return err
	}
	if err := mgr.Start(serving); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

func newManager(s settings, server webhook.Server) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := ownerlink.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	cacheOptions, err := ownerlink.CacheOptions(s.config.Contract())
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(s.cluster, ctrl.Options{
		Logger: zapr.NewLogger(s.log),
		Scheme: scheme,
		Cache:  cacheOptions,
		// Every replica answers reviews; the leader alone writes owner links, keeps the certificate and tells of the passes.
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
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr, nil
}

// addAdmission adds what answers reviews, and what it knows of the namespace's places.
func addAdmission(mgr manager.Manager, s settings) error {
	metadataClient, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return fmt.Errorf("making the metadata client: %w", err)
	}
	witness, err := ledger.NewWatchWitness(metadataClient, s.config.VMNamespace, s.config.Caps.Reservation.Duration, s.clock)
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
	register(mgr.GetWebhookServer(), s, p, capMetrics, metadataClient, mgr.GetEventRecorderFor("vmwarden"))
	return nil
}

// apiServerRequestTimeout is the default of kube-apiserver's --request-timeout.
const apiServerRequestTimeout = time.Minute

func newWebhookServer(s settings, getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (webhook.Server, error) {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, fmt.Errorf("reading --address: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("reading --address: %w", err)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: number, TLSOpts: []func(*tls.Config){
		func(c *tls.Config) { c.GetCertificate, c.MinVersion = getCertificate, tls.VersionTLS12 },
	}}), nil
}

func register(server webhook.Server, s settings, p places, capMetrics *policy.CapMetrics, metadataClient metadata.Interface, events record.EventRecorder) {
	contract := s.config.Contract()
	reportOnly := s.config.Mode == config.Audit
	surroundings := &policy.MetadataSurroundings{Client: metadataClient, Contract: contract}
	var requests policy.Requests
	if p.needs != nil {
		requests = p.needs.Requests
	}
	server.Register(policy.MutatePath, &webhook.Admission{Handler: &policy.Mutator{
		Contract: contract, ReportOnly: reportOnly, Groups: surroundings, Clock: s.clock, Log: s.log,
	}})
	server.Register(policy.ValidatePath, &webhook.Admission{Handler: &policy.Validator{
		Contract:           contract,
		Places:             p.ledger,
		Surroundings:       surroundings,
		Requests:           requests,
		ReportOnly:         reportOnly,
		AllowWhenUncertain: s.config.Caps.WhenUncertain == config.AllowWhenUncertain,
		Messages:           s.messages,
		Clock:              s.clock,
		Log:                s.log,
		Metrics:            policy.NewMetrics(metrics.Registry),
		Events:             events,
		CapMetrics:         capMetrics,
	}})
}
