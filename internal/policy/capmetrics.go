package policy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// CapMetrics tell what the caps hold. They are an Observer of the ledger: the numbers are those of the last count, be it for a
// decision or for them.
type CapMetrics struct {
	contract  lab.Contract
	duration  *prometheus.HistogramVec
	places    *prometheus.GaugeVec
	limits    *prometheus.GaugeVec
	cpu       *prometheus.GaugeVec
	memory    *prometheus.GaugeVec
	conflicts prometheus.Counter
	attempts  prometheus.Histogram
}

// The outcomes of a decision on a place.
const (
	outcomeCounted   = "counted"
	outcomeUncertain = "uncertain"
)

// NewCapMetrics registers the metrics.
func NewCapMetrics(contract lab.Contract, registry prometheus.Registerer) *CapMetrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &CapMetrics{
		contract: contract,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vmwarden_cap_decision_seconds",
			Help:    "Time that a create waited for the decision on its place, by outcome (counted or uncertain).",
			Buckets: []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"outcome"}),
		places: gauge("vmwarden_cap_places", "Places of virtual machines at the last count, by environment and state (used or reserved).", "environment", "state"),
		limits: gauge("vmwarden_cap_limit", "Greatest number of virtual machines, by environment; empty for the whole namespace.", "environment"),
		cpu:    gauge("vmwarden_cap_cpu_cores", "CPUs that launcher Pods request at the last count, by state (used, reserved or limit).", "state"),
		memory: gauge("vmwarden_cap_memory_bytes", "Memory that launcher Pods request at the last count, by state (used, reserved or limit).", "state"),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vmwarden_cap_conflicts_total", Help: "Decisions that started over because another replica had written the ledger.",
		}),
		attempts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vmwarden_cap_attempts", Help: "Attempts that a decision on one or more creates took.", Buckets: []float64{1, 2, 3, 5, 10, 20, 50},
		}),
	}
	// From the start at 0: what a series begins with Prometheus takes for no increase, and the first decision of every replica would be in no rate.
	for _, outcome := range []string{outcomeCounted, outcomeUncertain} {
		m.duration.WithLabelValues(outcome)
	}
	registry.MustRegister(m.duration, m.places, m.limits, m.cpu, m.memory, m.conflicts, m.attempts)
	return m
}

// Decided notes a decision.
func (m *CapMetrics) Decided(attempts int, tally ledger.Tally) {
	m.conflicts.Add(float64(attempts - 1))
	m.attempts.Observe(float64(attempts))
	m.Counted(tally)
}

// Counted notes a count.
func (m *CapMetrics) Counted(tally ledger.Tally) {
	m.limits.WithLabelValues("").Set(float64(tally.Limits.VMs))
	for environment, limit := range tally.Limits.Environments {
		m.limits.WithLabelValues(environment).Set(float64(limit))
	}
	// What belongs to no environment any more would stay at its last number.
	m.places.WithLabelValues(elsewhere, "used").Set(0)
	m.places.WithLabelValues(elsewhere, "reserved").Set(0)
	for _, share := range environmentShares(m.contract, tally) {
		m.places.WithLabelValues(share.name, "used").Set(float64(share.Used))
		m.places.WithLabelValues(share.name, "reserved").Set(float64(share.Reserved))
	}
	set := func(gauge *prometheus.GaugeVec, used, reserved int64, limit *int64, unit float64) {
		if limit != nil {
			gauge.WithLabelValues("limit").Set(float64(*limit) / unit)
			gauge.WithLabelValues("used").Set(float64(used) / unit)
			gauge.WithLabelValues("reserved").Set(float64(reserved) / unit)
		}
	}
	set(m.cpu, tally.Total.UsedNeed.MilliCPU, tally.Total.ReservedNeed.MilliCPU, tally.Limits.MilliCPU, 1000)
	set(m.memory, tally.Total.UsedNeed.Memory, tally.Total.ReservedNeed.Memory, tally.Limits.Memory, 1)
}

func (m *CapMetrics) observe(elapsed time.Duration, err error) {
	outcome := outcomeCounted
	if err != nil {
		outcome = outcomeUncertain
	}
	m.duration.WithLabelValues(outcome).Observe(elapsed.Seconds())
}
