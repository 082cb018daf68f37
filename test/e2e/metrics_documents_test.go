package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/documents"
	"github.com/ttlab/vmwarden/test/lab"
	"github.com/ttlab/vmwarden/test/monitoring"
)

// documented are vmwarden's own metrics as docs/metrics.md has them.
func documented(t *testing.T) []monitoring.Metric {
	t.Helper()
	metrics, err := monitoring.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// busyReplicas scrapes all replicas once each has decided something: a counter begins with what it counts.
func busyReplicas(t *testing.T) (leading int, all []scraped) {
	t.Helper()
	honest := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('m', 41), Environment: "prod"})
	await(t, "every replica decides, and one leads", func(ctx context.Context) (err error) {
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := shared.Backends["prod"].CreateObject(ctx, honest.DeepCopy(), dryRun); err != nil {
			return err
		}
		if leading, _, err = leader(t); err != nil {
			return err
		}
		all = nil
		for i, replica := range shared.Webhook.Replicas() {
			families := scrape(t, replica)
			for _, metric := range documented(t) {
				if !metric.Leader && families[metric.Name] == nil {
					return fmt.Errorf("replica %d does not export %s", i, metric.Name)
				}
			}
			all = append(all, families)
		}
		return nil
	})
	return leading, all
}

func TestEveryMetricIsDocumentedAsItIsExported(t *testing.T) {
	clean(t)
	leading, all := busyReplicas(t)
	var names []string
	for _, metric := range documented(t) {
		names = append(names, metric.Name)
		for i, families := range all {
			family := families[metric.Name]
			if family == nil {
				if !metric.Leader || i == leading {
					t.Errorf("%s is documented, and replica %d (leader: %t) does not export it", metric.Name, i, i == leading)
				}
				continue
			}
			if metric.Leader && i != leading {
				t.Errorf("%s is documented as the leader's, and replica %d exports it too", metric.Name, i)
			}
			if got := strings.ToLower(family.GetType().String()); got != metric.Type {
				t.Errorf("%s is a %s, and documented as a %s", metric.Name, got, metric.Type)
			}
			if got := labelNames(family); !slices.Equal(got, slices.Sorted(slices.Values(metric.Labels))) {
				t.Errorf("%s has the labels %v, and is documented with %v", metric.Name, got, metric.Labels)
			}
		}
	}
	for i, families := range all {
		for name := range families {
			if strings.HasPrefix(name, "vmwarden_") && !slices.Contains(names, name) {
				t.Errorf("docs/metrics.md has no row for %s, which replica %d exports", name, i)
			}
		}
	}
}

func labelNames(family *dto.MetricFamily) []string {
	names := map[string]bool{}
	for _, series := range family.GetMetric() {
		for _, pair := range series.GetLabel() {
			names[pair.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// TestAlertsAndDashboardAskForMetricsThatExist takes the metrics from real replicas and the real API server.
func TestAlertsAndDashboardAskForMetricsThatExist(t *testing.T) {
	clean(t)
	_, all := busyReplicas(t)
	all = append(all, scrapeAPIServer(t))
	rules, err := monitoring.Rules()
	if err != nil {
		t.Fatal(err)
	}
	queries, err := monitoring.Queries()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		queries = append(queries, monitoring.Query{Panel: rule.Alert, Expr: rule.Expr})
	}
	for _, query := range queries {
		for _, name := range monitoring.MetricNames(query.Expr) {
			if !slices.ContainsFunc(all, func(families scraped) bool { return families.has(name) }) {
				t.Errorf("%s asks for %s, which nobody exports", query.Panel, name)
			}
		}
	}
}

// has tells whether there are series of this name. A histogram without buckets, as a native one is in the text format, has none
// that a quantile could be made of.
func (s scraped) has(name string) bool {
	if family := s[name]; family != nil {
		return family.GetType() != dto.MetricType_HISTOGRAM
	}
	for suffix, buckets := range map[string]int{"_bucket": 2, "_sum": 0, "_count": 0} {
		family := s[strings.TrimSuffix(name, suffix)]
		if strings.HasSuffix(name, suffix) && family.GetType() == dto.MetricType_HISTOGRAM && len(family.GetMetric()) > 0 {
			return len(family.GetMetric()[0].GetHistogram().GetBucket()) >= buckets
		}
	}
	return false
}

func scrapeAPIServer(t *testing.T) scraped {
	t.Helper()
	text, err := clients(t).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return parseMetrics(t, string(text))
}

// TestTheAPIServerCountsWhatItCouldNotAsk shows the series that an alert goes by: what no replica can tell of.
func TestTheAPIServerCountsWhatItCouldNotAsk(t *testing.T) {
	clean(t)
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	refused := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('m', 51), Environment: "prod"})
	if _, err := shared.Backends["prod"].CreateObject(t.Context(), refused, metav1.CreateOptions{}); err == nil {
		t.Fatal("a create was admitted with every replica down")
	}
	counted := scrapeAPIServer(t).values("apiserver_admission_webhook_rejection_count",
		labelled("name", "mutate.vmwarden.io", "error_type", "calling_webhook_error"))
	if len(counted) == 0 || counted[0] < 1 {
		t.Errorf("the API server counted %v", counted)
	}
}

// TestTheRunbooksCommandsRun runs what the runbook tells to run with vmwarden's own binaries.
func TestTheRunbooksCommandsRun(t *testing.T) {
	clean(t)
	_, first := reapjob(t, "prod", "run")
	expectExit(t, first, reap.ExitClean)
	lines, err := documents.Lines("docs/runbook.md", "sh")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		program, rest, _ := strings.Cut(line, " ")
		var run lab.Run
		var err error
		switch program {
		case "kubectl":
			continue // Not in the lab.
		case "reapjob":
			rest = strings.Replace(rest, " --config /etc/vmwarden/config.yaml --environment prod", "", 1)
			run, err = shared.Reapjob(t.Context(), "prod", lab.Config, strings.Fields(rest)...)
		case "webhook":
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, shared.Admin); err != nil {
				t.Fatal(err)
			}
			rest = strings.Replace(rest, "/etc/vmwarden/config.yaml", write(t, "config.yaml", lab.Config), 1)
			run, err = shared.Binary(t.Context(), "webhook", append(strings.Fields(rest), "--kubeconfig", kubeconfig)...)
		default:
			t.Errorf("%q is not a command that this test can run", line)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != reap.ExitClean {
			t.Errorf("%s: exit status %d\n%s", line, run.Status, run.Stderr)
		}
	}
}
