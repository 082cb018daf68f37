package observe

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ttlab/vmwarden/internal/status"
)

// neverRan is the exit status of the last pass where there was none. 0 would say that it was clean.
const neverRan = -1

// passSeries makes an environment's series of its status. There is one for every word, also where it is 0: a series that begins with
// the first failure shows no increase at it.
type passSeries struct {
	readable, lastPass, lastClean, lastExit, lastDuration *prometheus.Desc
	lastItems, lastHeld                                   *prometheus.Desc
	passes, items, held                                   *prometheus.Desc
}

func newPassSeries() passSeries {
	series := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vmwarden_reap_"+name, help, append([]string{"environment"}, labels...), nil)
	}
	return passSeries{
		readable:     series("status_readable", "1 where the status ConfigMap of the environment's passes could be read at the last look, 0 where not."),
		lastPass:     series("last_pass_timestamp_seconds", "When the last pass started; 0 where none ever ran."),
		lastClean:    series("last_clean_timestamp_seconds", "When the last pass that ended with exit status 0 started; 0 where none ever did."),
		lastExit:     series("last_pass_exit_status", "Exit status of the last pass; -1 where none ever ran."),
		lastDuration: series("last_pass_duration_seconds", "How long the last pass took; 0 where none ever ran."),
		lastItems:    series("last_pass_items", "Items of the last pass by direction and outcome (done, kept or failed).", "direction", "outcome"),
		lastHeld:     series("last_pass_held", "1 where the last pass held a direction back, by direction and cause (Aborted, Fenced or Braked), 0 where not.", "direction", "cause"),
		passes:       series("passes_total", "Passes by exit status, since the status ConfigMap was made.", "exit_status"),
		items:        series("items_total", "Items of all passes by direction and outcome (done, kept or failed), since the status ConfigMap was made.", "direction", "outcome"),
		held:         series("held_total", "Passes that held a direction back, by direction and cause (Aborted, Fenced or Braked), since the status ConfigMap was made.", "direction", "cause"),
	}
}

func (s passSeries) describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		s.readable, s.lastPass, s.lastClean, s.lastExit, s.lastDuration, s.lastItems, s.lastHeld, s.passes, s.items, s.held,
	} {
		descriptions <- description
	}
}

// collect tells what is known. Of a status that was never read nothing is known but that: zeros would say that no pass ever ran.
func (s passSeries) collect(metrics chan<- prometheus.Metric, environment string, r reading) {
	tell := func(description *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, kind, value, append([]string{environment}, labels...)...)
	}
	tell(s.readable, prometheus.GaugeValue, flag(r.readable))
	if r.status == nil {
		return
	}
	tell(s.lastPass, prometheus.GaugeValue, moment(r.status.LastPass))
	tell(s.lastClean, prometheus.GaugeValue, moment(r.status.LastClean))
	last := status.Pass{ExitStatus: neverRan}
	if len(r.status.Passes) > 0 {
		last = r.status.Passes[0]
	}
	tell(s.lastExit, prometheus.GaugeValue, float64(last.ExitStatus))
	tell(s.lastDuration, prometheus.GaugeValue, last.DurationSeconds)
	for _, exitStatus := range status.ExitStatuses() {
		tell(s.passes, prometheus.CounterValue, float64(r.status.PassTotals[exitStatus]), strconv.Itoa(exitStatus))
	}
	for _, direction := range status.Directions() {
		total := r.status.DirectionTotals[direction]
		for outcome, n := range outcomes(last.Summary[direction]) {
			tell(s.lastItems, prometheus.GaugeValue, float64(n), direction, outcome)
		}
		for outcome, n := range outcomes(total.Count) {
			tell(s.items, prometheus.CounterValue, float64(n), direction, outcome)
		}
		for _, cause := range status.Causes() {
			tell(s.lastHeld, prometheus.GaugeValue, flag(held(last, direction, cause)), direction, cause)
			tell(s.held, prometheus.CounterValue, float64(total.Held[cause]), direction, cause)
		}
	}
}

func outcomes(count status.Count) map[string]int {
	return map[string]int{"done": count.Done, "kept": count.Kept, "failed": count.Failed}
}

func held(pass status.Pass, direction, cause string) bool {
	for _, hold := range pass.Holds {
		if hold.Direction == direction && hold.Cause == cause {
			return true
		}
	}
	return false
}

func moment(at *time.Time) float64 {
	if at == nil {
		return 0
	}
	return seconds(*at)
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}
