package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// late counts the virtual machines of an environment that should not be there any more, or of which nobody can say.
type late struct {
	pastDeadline, withoutDeadline, stuck int
}

// with counts a machine. One that is terminating holds its memory until it is gone, so it is past its deadline like any other.
func (l late) with(machine *metav1.PartialObjectMetadata, now time.Time) late {
	deadline, err := lab.ParseDeadline(machine.Annotations[lab.DeadlineAnnotation])
	switch {
	case err != nil:
		l.withoutDeadline++
	case now.After(deadline):
		l.pastDeadline++
	}
	if asked := machine.DeletionTimestamp; asked != nil && now.Sub(asked.Time) > lab.StuckAfter {
		l.stuck++
	}
	return l
}

// lateness makes series of the counts.
type lateness struct {
	pastDeadline, withoutDeadline, stuck *prometheus.Desc
}

func newLateness() lateness {
	series := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("vmwarden_vms_"+name, help, []string{"environment"}, nil)
	}
	return lateness{
		pastDeadline:    series("past_deadline", "Virtual machines that exist past their deadline, by environment."),
		withoutDeadline: series("without_deadline", "Virtual machines whose deadline annotation is missing or unreadable, by environment."),
		stuck:           series("stuck_terminating", "Virtual machines that have been terminating for more than 5 minutes, by environment."),
	}
}

func (l lateness) describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{l.pastDeadline, l.withoutDeadline, l.stuck} {
		descriptions <- description
	}
}

func (l lateness) collect(metrics chan<- prometheus.Metric, counts map[string]late) {
	for environment, count := range counts {
		metrics <- prometheus.MustNewConstMetric(l.pastDeadline, prometheus.GaugeValue, float64(count.pastDeadline), environment)
		metrics <- prometheus.MustNewConstMetric(l.withoutDeadline, prometheus.GaugeValue, float64(count.withoutDeadline), environment)
		metrics <- prometheus.MustNewConstMetric(l.stuck, prometheus.GaugeValue, float64(count.stuck), environment)
	}
}
