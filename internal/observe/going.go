package observe

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ttlab/vmwarden/internal/lab"
)

// otherReason stands for a reason that is none of reasons: a backend could write the annotation too.
const otherReason = "other"

// reasons are those for which a reaper asks a machine to go: a ghost has none.
func reasons() []string { return []string{"deadline", "expired", "orphan"} }

// going keeps how long reaped machines took to go. The three times are of the same machines: from the reason to the request, from the
// request to the end, and both together.
type going struct {
	toAsked, toGone, whole *prometheus.HistogramVec
	unseen                 *prometheus.CounterVec
}

// newGoing begins every series at once: of one that begins with its first machine, that machine never shows as an increase.
func newGoing(environments []string) *going {
	times := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vmwarden_reaped_vm_" + name, Help: help,
			// A pass is a minute away at most, a guest has half a minute to shut down, and what takes an hour is an outage.
			Buckets: []float64{1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800, 3600, 10800, 86400},
		}, []string{"environment", "reason"})
	}
	g := &going{
		toAsked: times("expiry_to_deletion_asked_seconds", "From the moment since which a virtual machine should be gone to the moment at which a reaper first asked for its deletion, by environment and reason (deadline, expired or orphan)."),
		toGone:  times("deletion_asked_to_gone_seconds", "From the moment at which a reaper first asked for a virtual machine's deletion to the moment at which it was gone, by environment and reason (deadline, expired or orphan)."),
		whole:   times("expiry_to_gone_seconds", "From the moment since which a virtual machine should be gone (session's end, deadline, or an orphan's creation) to the moment at which it was gone, by environment and reason (deadline, expired or orphan)."),
		unseen: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vmwarden_reaped_vms_unseen_total",
			Help: "Reaped virtual machines that went while the watch was interrupted, so that how long it took is not known, by environment.",
		}, []string{"environment"}),
	}
	for _, environment := range environments {
		for _, reason := range reasons() {
			for _, histogram := range []*prometheus.HistogramVec{g.toAsked, g.toGone, g.whole} {
				histogram.WithLabelValues(environment, reason)
			}
		}
		g.unseen.WithLabelValues(environment)
	}
	return g
}

// observe notes a machine that is gone. The reaper, the database and this process each have a clock: what seems to have taken
// less than nothing took nothing.
func (g *going) observe(environment string, mark lab.Reaped, gone time.Time) {
	reason := mark.Reason
	if !slices.Contains(reasons(), reason) {
		reason = otherReason
	}
	for _, interval := range []struct {
		histogram *prometheus.HistogramVec
		took      float64
	}{
		{g.toAsked, mark.DeletionAskedAt.Sub(mark.Since).Seconds()},
		{g.toGone, gone.Sub(mark.DeletionAskedAt).Seconds()},
		{g.whole, gone.Sub(mark.Since).Seconds()},
	} {
		interval.histogram.WithLabelValues(environment, reason).Observe(max(0, interval.took))
	}
}

func (g *going) describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range []prometheus.Collector{g.toAsked, g.toGone, g.whole, g.unseen} {
		collector.Describe(descriptions)
	}
}

func (g *going) collect(metrics chan<- prometheus.Metric) {
	for _, collector := range []prometheus.Collector{g.toAsked, g.toGone, g.whole, g.unseen} {
		collector.Collect(metrics)
	}
}
