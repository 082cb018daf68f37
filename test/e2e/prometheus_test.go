package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
	"github.com/ttlab/vmwarden/test/monitoring"
	"github.com/ttlab/vmwarden/test/prometheus"
)

// neverSeen are the series that alerts ask for and that no test can bring about on real servers, and why.
var neverSeen = map[string]string{
	`vmwarden_admission_decisions_total{code=~"Undecided|ObjectUnreadable"}`: "what a rule cannot decide on, and what cannot be read, the API server refuses before it asks",
}

// TestEveryQueryHasDataInARealPrometheus lets a real Prometheus scrape real replicas and the real API server while the lab is at work, and asks it all
// that dashboard and alerts ask.
func TestEveryQueryHasDataInARealPrometheus(t *testing.T) {
	clean(t)
	letAReviewGoUnanswered(t)
	reconfigure(t, strings.Replace(lab.Config, "  - name: prod\n", "  - name: prod\n    cap: 2\n", 1))
	server := startPrometheus(t)
	await(t, "the leader is scraped, and the API server", func(ctx context.Context) error {
		for _, query := range []string{leaderOnly, leaderMachines, "apiserver_admission_webhook_rejection_count"} {
			if err := hasData(ctx, server, query); err != nil {
				return err
			}
		}
		return nil
	})
	letTheLabWork(t)

	queries, err := monitoring.Queries()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "all queries of the dashboard have data", func(ctx context.Context) error {
		var problems []error
		for _, query := range queries {
			if ctx.Err() != nil {
				break
			}
			if err := hasData(ctx, server, query.Filled()); err != nil {
				problems = append(problems, fmt.Errorf("panel %s: %w", query.Panel, err))
			}
		}
		return errors.Join(problems...)
	})
	rules, err := monitoring.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		for _, selector := range monitoring.Selectors(rule.Expr) {
			_, excused := neverSeen[selector]
			if err := hasData(t.Context(), server, "last_over_time("+selector+"[1h])"); (err != nil) != excused {
				t.Errorf("%s, in the list of what is never seen: %t: %v", rule.Alert, excused, err)
			}
		}
	}
	await(t, "all alerts were evaluated", func(ctx context.Context) error { return evaluated(ctx, server, len(rules)) })
}

// letAReviewGoUnanswered makes the API server count a review that nobody answered. The replicas are gone afterwards.
func letAReviewGoUnanswered(t *testing.T) {
	t.Helper()
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	refused := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('P', 1), Environment: "prod"})
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), refused, metav1.CreateOptions{}); err == nil {
		t.Error("a machine was made with no replica to ask")
	}
}

// startPrometheus has one that scrapes the replicas as the chart's ServiceMonitor asks, and the API server, and evaluates the chart's alerts.
func startPrometheus(t *testing.T) *prometheus.Server {
	t.Helper()
	var replicas prometheus.Target
	for _, replica := range shared.Webhook.Replicas() {
		replicas.Addresses = append(replicas.Addresses, replica.MetricsAddress)
	}
	directory := t.TempDir()
	files := prometheus.TLS{CAFile: "ca.crt", CertFile: "client.crt", KeyFile: "client.key"}
	for path, content := range map[*string][]byte{
		&files.CAFile: shared.Admin.CAData, &files.CertFile: shared.Admin.CertData, &files.KeyFile: shared.Admin.KeyData,
	} {
		*path = filepath.Join(directory, *path)
		if err := os.WriteFile(*path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := prometheus.Start(t.Context(), []string{monitoring.RulesFile()},
		prometheus.Job{Name: "vmwarden-webhook", HonorLabels: true, Targets: []prometheus.Target{replicas}},
		prometheus.Job{Name: "kube-apiserver", Scheme: "https", TLS: &files, Targets: []prometheus.Target{
			{Addresses: []string{strings.TrimPrefix(shared.Admin.Host, "https://")}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// letTheLabWork brings about all that is counted: machines made, denied for each kind of reason and reaped, and passes of every outcome.
func letTheLabWork(t *testing.T) {
	t.Helper()
	ended, stubborn := sessionID('P', 11), sessionID('P', 12)
	open(t, "prod", ended)
	insert(t, "prod", expired(ended))
	for _, environment := range lab.Environments {
		_, run := reapjob(t, environment, "run")
		expectExit(t, run, reap.ExitClean)
	}
	open(t, "prod", stubborn)
	open(t, "prod", sessionID('P', 13))
	create := func(as, of string, n int, changes ...func(*unstructured.Unstructured)) error {
		lesson := backend.Lesson{Session: sessionID('P', n), Environment: of}
		_, err := shared.Backends[as].CreateObject(t.Context(), object(t, backend.VMContainerDisk, lesson, changes...), metav1.CreateOptions{})
		return err
	}
	expectDenied(t, "one too many", create("prod", "prod", 14), "CapEnvironment")
	expectDenied(t, "dev claims prod", create("dev", "prod", 15), "EnvironmentMismatch")
	expectDenied(t, "of a size that nobody knows", create("dev", "dev", 16, func(o *unstructured.Unstructured) {
		setNested(t, o, "no-such-type", "spec", "instancetype", "name")
	}), "CapUnknown")
	insert(t, "prod", expired(stubborn))
	refuseDeletes(t, backend.Lesson{Session: stubborn}.VMName())
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitItemsFailed)
	_, run = reapjobWith(t, "dev", shared.ReaperURL("prod"), lab.Config, "run")
	expectExit(t, run, reap.ExitHeld)
}

// hasData tells whether Prometheus answers a query with at least one number.
func hasData(ctx context.Context, server *prometheus.Server, query string) error {
	value, warnings, err := server.API.Query(ctx, query, time.Now())
	if err != nil || len(warnings) > 0 {
		return fmt.Errorf("%s: %v: %w", query, warnings, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return fmt.Errorf("%s: the answer is a %s", query, value.Type())
	}
	if !slices.ContainsFunc(vector, func(sample *model.Sample) bool { return !math.IsNaN(float64(sample.Value)) }) {
		return fmt.Errorf("%s: the answer is %q", query, vector)
	}
	return nil
}

// evaluated tells whether Prometheus has evaluated so many alerts, none with an error.
func evaluated(ctx context.Context, server *prometheus.Server, want int) error {
	result, err := server.API.Rules(ctx)
	if err != nil {
		return err
	}
	count := 0
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			alert, ok := rule.(prometheusv1.AlertingRule)
			if !ok || alert.Health != prometheusv1.RuleHealthGood || alert.LastError != "" {
				return fmt.Errorf("%+v", rule)
			}
			count++
		}
	}
	if count != want {
		return fmt.Errorf("%d alerts, want %d", count, want)
	}
	return nil
}
