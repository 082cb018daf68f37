package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/test/lab"
	"github.com/ttlab/vmwarden/test/process"
)

// serveCommand makes this program the server of what our webhook is compared with: a process of its own, as the webhook is.
const serveCommand = "serve"

// The paths of the servers. A registration adds what the chart registers.
const (
	idlePath  = "/idle"
	rulesPath = "/rules"
)

// serve answers reviews with handlers that do nothing, and with all rules and no cap.
func serve(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet(serveCommand, flag.ContinueOnError)
	port := flags.Int("port", 0, "")
	certificates := flags.String("cert-dir", "", "")
	kubeconfig := flags.String("kubeconfig", "", "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	log, err := zap.NewProduction()
	if err != nil {
		return err
	}
	ctrllog.SetLogger(zapr.NewLogger(log))
	rules, err := uncapped(*kubeconfig, log)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates, TLSOpts: []func(*tls.Config){
		func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 },
	}})
	for path, p := range map[string]pair{idlePath: idlePair(), rulesPath: rules} {
		server.Register(path+policy.MutatePath, p.mutating)
		server.Register(path+policy.ValidatePath, p.validating)
	}
	return server.Start(ctx)
}

// uncapped are our handlers with what they look up at the API server, but without the count.
func uncapped(kubeconfig string, log *zap.Logger) (pair, error) {
	configuration, err := config.Parse([]byte(lab.Config))
	if err != nil {
		return pair{}, fmt.Errorf("reading the lab's configuration: %w", err)
	}
	cluster, err := cli.ClusterConfig(kubeconfig, "webhook")
	if err != nil {
		return pair{}, err
	}
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return pair{}, fmt.Errorf("making the client: %w", err)
	}
	contract := configuration.Contract()
	surroundings := &policy.MetadataSurroundings{Client: client, Contract: contract}
	registry := prometheus.NewRegistry()
	return handlers(&policy.Mutator{Contract: contract, Groups: surroundings, Clock: clock.RealClock{}, Log: log}, &policy.Validator{
		Contract: contract, Places: openHouse{}, Surroundings: surroundings, Clock: clock.RealClock{}, Log: log,
		Metrics: policy.NewMetrics(registry), CapMetrics: policy.NewCapMetrics(contract, registry), Events: record.NewFakeRecorder(1),
	}), nil
}

// startServer starts the process that serves, and gives its address.
func startServer(ctx context.Context, group *process.Group, l *lab.Lab) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	port, err := process.FreePort()
	if err != nil {
		return "", err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	server, err := group.Start(ctx, process.Spec{Name: "server", Path: program, Args: []string{
		serveCommand, "-port", strconv.Itoa(port), "-cert-dir", l.Webhook.CertificateDir(), "-kubeconfig", l.Webhook.Kubeconfig(),
	}})
	if err != nil {
		return "", err
	}
	return address, server.AwaitReady(ctx, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}
