package policy

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Metrics are the webhook's own, beside those of controller-runtime.
type Metrics struct {
	decisions *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vmwarden_admission_decisions_total",
			Help: "Validating decisions by operation, decision (allow, deny, or would-deny in mode Audit), code (empty when allowed; a denial counts once for each of its codes) and environment of the object.",
		}, []string{"operation", "decision", "code", "environment"}),
	}
	registry.MustRegister(m.decisions)
	return m
}

func (m *Metrics) observeDecision(f Facts, environment string, contract lab.Contract, decision Decision) {
	operation := string(f.Operation)
	if !slices.Contains([]Operation{Create, Update, Delete}, f.Operation) {
		operation = "other"
	}
	// A label value that a requester chose would let them grow the metric without bound.
	if environment != "" && !contract.HasEnvironment(environment) {
		environment = "unknown"
	}
	if decision.Allowed() {
		m.decisions.WithLabelValues(operation, decision.word(), "", environment).Inc()
		return
	}
	for _, code := range decision.Codes() {
		m.decisions.WithLabelValues(operation, decision.word(), code, environment).Inc()
	}
}
