package observe

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap/zaptest"

	"github.com/ttlab/vmwarden/internal/status"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// told is a status that a test sets.
type told struct {
	status status.Status
	err    error
}

func (s *told) Read(context.Context) (status.Status, error) { return s.status, s.err }

// gather gives the collector's values by series, such as name{label=value,…}; of a histogram its count and its sum.
func gather(t *testing.T, collector prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			maps.Copy(values, valuesOf(family.GetName(), metric))
		}
	}
	return values
}

func valuesOf(name string, metric *dto.Metric) map[string]float64 {
	var labels []string
	for _, pair := range metric.GetLabel() {
		labels = append(labels, pair.GetName()+"="+pair.GetValue())
	}
	of := "{" + strings.Join(labels, ",") + "}"
	switch {
	case metric.GetGauge() != nil:
		return map[string]float64{name + of: metric.GetGauge().GetValue()}
	case metric.GetCounter() != nil:
		return map[string]float64{name + of: metric.GetCounter().GetValue()}
	default:
		return map[string]float64{
			name + "_count" + of: float64(metric.GetHistogram().GetSampleCount()), name + "_sum" + of: metric.GetHistogram().GetSampleSum(),
		}
	}
}

func expectValues(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for series, value := range want {
		if found, exists := got[series]; !exists || found != value {
			t.Errorf("%s = %v (exists: %t), want %v", series, found, exists, value)
		}
	}
}

// looking gives the metrics after one look at the source.
func looking(t *testing.T, passes *Passes) map[string]float64 {
	t.Helper()
	for _, source := range passes.sources {
		passes.look(t.Context(), source)
	}
	return gather(t, passes)
}

func TestAnEnvironmentWhosePassNeverRanHasEverySeries(t *testing.T) {
	never := looking(t, NewPasses([]Source{{"prod", &told{}}}, zaptest.NewLogger(t)))
	expectValues(t, never, map[string]float64{
		"vmwarden_reap_status_readable{environment=prod}":                                 1,
		"vmwarden_reap_last_pass_timestamp_seconds{environment=prod}":                     0,
		"vmwarden_reap_last_clean_timestamp_seconds{environment=prod}":                    0,
		"vmwarden_reap_last_pass_exit_status{environment=prod}":                           -1,
		"vmwarden_reap_passes_total{environment=prod,exit_status=4}":                      0,
		"vmwarden_reap_items_total{direction=ghost,environment=prod,outcome=failed}":      0,
		"vmwarden_reap_last_pass_held{cause=Fenced,direction=orphan,environment=prod}":    0,
		"vmwarden_reap_last_pass_items{direction=deadline,environment=prod,outcome=done}": 0,
		"vmwarden_reap_held_total{cause=Aborted,direction=expired,environment=prod}":      0,
		"vmwarden_reap_last_pass_duration_seconds{environment=prod}":                      0,
	})
	full := status.Status{}
	full.Add(status.Pass{StartedAt: noon, Summary: map[string]status.Count{"orphan": {Done: 1}}})
	ran := looking(t, NewPasses([]Source{{"prod", &told{status: full}}}, zaptest.NewLogger(t)))
	if len(never) != len(ran) {
		t.Errorf("%d series before the first pass, %d after it", len(never), len(ran))
	}
}

func TestMetricsTellTheLastPassAndAllPasses(t *testing.T) {
	var s status.Status
	s.Add(status.Pass{StartedAt: noon, Summary: map[string]status.Count{"expired": {Done: 2, Kept: 1}}})
	s.Add(status.Pass{
		StartedAt: noon.Add(time.Minute), DurationSeconds: 1.5, ExitStatus: 4, Summary: map[string]status.Count{"expired": {Done: 1, Failed: 1}},
		Holds: []status.Hold{{Direction: "orphan", Cause: "Braked", Reason: "lab-a0000000 of student 7"}},
	})
	expectValues(t, looking(t, NewPasses([]Source{{"prod", &told{status: s}}}, zaptest.NewLogger(t))), map[string]float64{
		"vmwarden_reap_last_pass_timestamp_seconds{environment=prod}":                    float64(noon.Unix() + 60),
		"vmwarden_reap_last_clean_timestamp_seconds{environment=prod}":                   float64(noon.Unix()),
		"vmwarden_reap_last_pass_exit_status{environment=prod}":                          4,
		"vmwarden_reap_last_pass_duration_seconds{environment=prod}":                     1.5,
		"vmwarden_reap_last_pass_held{cause=Braked,direction=orphan,environment=prod}":   1,
		"vmwarden_reap_last_pass_held{cause=Fenced,direction=orphan,environment=prod}":   0,
		"vmwarden_reap_held_total{cause=Braked,direction=orphan,environment=prod}":       1,
		"vmwarden_reap_passes_total{environment=prod,exit_status=0}":                     1,
		"vmwarden_reap_passes_total{environment=prod,exit_status=4}":                     1,
		"vmwarden_reap_items_total{direction=expired,environment=prod,outcome=done}":     3,
		"vmwarden_reap_items_total{direction=expired,environment=prod,outcome=kept}":     1,
		"vmwarden_reap_items_total{direction=expired,environment=prod,outcome=failed}":   1,
		"vmwarden_reap_last_pass_items{direction=expired,environment=prod,outcome=done}": 1,
		"vmwarden_reap_last_pass_items{direction=expired,environment=prod,outcome=kept}": 0,
	})
}

func TestNoWordOfAConfigMapBecomesALabel(t *testing.T) {
	var s status.Status
	s.Add(status.Pass{
		StartedAt: noon, ExitStatus: 77, Summary: map[string]status.Count{"student-7": {Done: 1}},
		Holds: []status.Hold{{Direction: "student-7", Cause: "student-7"}, {Direction: "orphan", Cause: "student-7"}},
	})
	for series := range looking(t, NewPasses([]Source{{"prod", &told{status: s}}}, zaptest.NewLogger(t))) {
		if strings.Contains(series, "student-7") || strings.Contains(series, "=77") {
			t.Errorf("series %s", series)
		}
	}
}

func TestAStatusThatCannotBeReadKeepsWhatWasKnown(t *testing.T) {
	var s status.Status
	s.Add(status.Pass{StartedAt: noon})
	source := &told{status: s}
	passes := NewPasses([]Source{{"prod", source}}, zaptest.NewLogger(t))
	looking(t, passes)
	source.err = errors.New("forbidden")
	expectValues(t, looking(t, passes), map[string]float64{
		"vmwarden_reap_status_readable{environment=prod}":             0,
		"vmwarden_reap_last_pass_timestamp_seconds{environment=prod}": float64(noon.Unix()),
	})
}

func TestAStatusThatWasNeverReadIsNotTakenForAPassThatNeverRan(t *testing.T) {
	got := looking(t, NewPasses([]Source{{"prod", &told{err: errors.New("forbidden")}}, {"dev", &told{}}}, zaptest.NewLogger(t)))
	expectValues(t, got, map[string]float64{
		"vmwarden_reap_status_readable{environment=prod}":            0,
		"vmwarden_reap_status_readable{environment=dev}":             1,
		"vmwarden_reap_last_pass_timestamp_seconds{environment=dev}": 0,
	})
	if _, found := got["vmwarden_reap_last_pass_timestamp_seconds{environment=prod}"]; found {
		t.Error("it is told when prod's last pass was")
	}
}

func TestOnlyWhoLeadsTellsOfPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &told{}
		passes := NewPasses([]Source{{"prod", source}}, zaptest.NewLogger(t))
		if got := gather(t, passes); len(got) != 0 {
			t.Errorf("before leading: %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = passes.Start(ctx) }()
		synctest.Wait()
		expectValues(t, gather(t, passes), map[string]float64{"vmwarden_reap_passes_total{environment=prod,exit_status=0}": 0})
		stop()
		synctest.Wait()
		if got := gather(t, passes); len(got) != 0 {
			t.Errorf("after leading: %v", got)
		}
	})
}
