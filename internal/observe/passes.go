package observe

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/ttlab/vmwarden/internal/status"
)

const (
	// lookInterval is how old the numbers may become. A pass runs once a minute, and Prometheus seldom asks more often than this.
	// Looking needs the right to get the ConfigMap and no other, where a watch would need list and watch too.
	lookInterval = 10 * time.Second
	// lookTimeout bounds one look, so that one ConfigMap that cannot be read keeps no other from being.
	lookTimeout = 5 * time.Second
)

// StatusReader gives the passes of an environment. That no pass ever ran is no error. status.Store is one.
type StatusReader interface {
	Read(ctx context.Context) (status.Status, error)
}

// Source is where an environment's passes are read.
type Source struct {
	Environment string
	Status      StatusReader
}

// Passes tells Prometheus of the passes of every configured environment, from their status ConfigMaps, so that counts survive
// every restart of ours. It is a leader's runnable of a controller-runtime manager and a prometheus.Collector, which has nothing
// to tell unless the runnable runs.
type Passes struct {
	sources []Source
	log     *zap.Logger
	series  passSeries

	mutex sync.Mutex
	// readings are by environment; there are none where this replica does not lead.
	readings map[string]reading
}

// reading is what is known of an environment.
type reading struct {
	// readable: the last look succeeded.
	readable bool
	// status is what the last look that succeeded showed; nil where none has.
	status *status.Status
}

// NewPasses makes metrics of what the sources tell.
func NewPasses(sources []Source, log *zap.Logger) *Passes {
	return &Passes{sources: sources, log: log, series: newPassSeries()}
}

// Start looks again and again until the context ends, and then tells no more.
func (p *Passes) Start(ctx context.Context) error {
	defer p.forget()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		for _, source := range p.sources {
			p.look(ctx, source)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is true: see the package comment.
func (p *Passes) NeedLeaderElection() bool { return true }

func (p *Passes) look(ctx context.Context, source Source) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := source.Status.Read(ctx)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before, looked := p.readings[source.Environment]
	now := reading{readable: err == nil, status: before.status}
	if err == nil {
		now.status = &found
	} else if before.readable || !looked {
		// Once, not at every look.
		p.log.Warn("a status cannot be read; its metrics keep their last values", zap.String("environment", source.Environment), zap.Error(err))
	}
	if p.readings == nil {
		p.readings = map[string]reading{}
	}
	p.readings[source.Environment] = now
}

func (p *Passes) forget() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.readings = nil
}

// Describe implements prometheus.Collector.
func (p *Passes) Describe(descriptions chan<- *prometheus.Desc) { p.series.describe(descriptions) }

// Collect implements prometheus.Collector.
func (p *Passes) Collect(metrics chan<- prometheus.Metric) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for environment, reading := range p.readings {
		p.series.collect(metrics, environment, reading)
	}
}
