package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/ttlab/vmwarden/test/lab"
)

// scraped is what a replica exports, by metric.
type scraped map[string]*dto.MetricFamily

func parseMetrics(t *testing.T, text string) scraped {
	t.Helper()
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("reading metrics: %v", err)
	}
	return families
}

// scrape asks a replica for its metrics, as Prometheus does.
func scrape(t *testing.T, replica *lab.Replica) scraped {
	t.Helper()
	return parseMetrics(t, get(t, "http://"+replica.MetricsAddress+"/metrics"))
}

// labelled makes labels of pairs of name and value.
func labelled(pairs ...string) map[string]string {
	labels := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		labels[pair[0]] = pair[1]
	}
	return labels
}

// values are those of the metric's series with at least these labels; of a histogram the counts.
func (s scraped) values(metric string, labels map[string]string) []float64 {
	var found []float64
	for _, series := range s[metric].GetMetric() {
		own := map[string]string{}
		for _, pair := range series.GetLabel() {
			own[pair.GetName()] = pair.GetValue()
		}
		if !maps.Equal(labels, restrict(own, labels)) {
			continue
		}
		found = append(found, series.GetGauge().GetValue()+series.GetCounter().GetValue()+float64(series.GetHistogram().GetSampleCount()))
	}
	return found
}

// restrict keeps those labels that others has too.
func restrict(labels, others map[string]string) map[string]string {
	kept := maps.Clone(labels)
	maps.DeleteFunc(kept, func(name, _ string) bool { return others[name] == "" })
	return kept
}

// Metrics that the leader alone exports: of the passes, and of the machines.
const (
	leaderOnly     = "vmwarden_reap_status_readable"
	leaderMachines = "vmwarden_vms_past_deadline"
)

// leader gives the number of the only replica that exports anything of what the leader exports, once it exports all of it.
func leader(t *testing.T) (int, scraped, error) {
	t.Helper()
	var leading []int
	var exported scraped
	for i, replica := range shared.Webhook.Replicas() {
		if families := scrape(t, replica); families[leaderOnly] != nil || families[leaderMachines] != nil {
			leading, exported = append(leading, i), families
		}
	}
	if len(leading) > 1 {
		t.Fatalf("replicas %v export what only the leader may", leading)
	}
	if len(leading) == 0 || exported[leaderOnly] == nil || exported[leaderMachines] == nil {
		return 0, nil, errors.New("no replica exports all that the leader exports")
	}
	return leading[0], exported, nil
}

// awaitMetric waits until the leader's only series of the metric with these labels has the value.
func awaitMetric(t *testing.T, want float64, metric string, labels ...string) scraped {
	t.Helper()
	var exported scraped
	await(t, fmt.Sprintf("%s%v is %v", metric, labels, want), func(context.Context) (err error) {
		if _, exported, err = leader(t); err != nil {
			return err
		}
		if got := exported.values(metric, labelled(labels...)); !slices.Equal(got, []float64{want}) {
			return fmt.Errorf("the leader says %v", got)
		}
		return nil
	})
	return exported
}

// expectMetric checks the only series of the metric with these labels.
func expectMetric(t *testing.T, exported scraped, want float64, metric string, labels ...string) {
	t.Helper()
	if got := exported.values(metric, labelled(labels...)); !slices.Equal(got, []float64{want}) {
		t.Errorf("%s%v = %v, want %v", metric, labels, got, want)
	}
}
