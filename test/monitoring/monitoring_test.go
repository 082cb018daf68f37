package monitoring

import (
	"slices"
	"strings"
	"testing"
)

func rules(t *testing.T) []Rule {
	t.Helper()
	all, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

func TestEveryAlertHasASectionAndEverySectionAnAlert(t *testing.T) {
	sections, err := Sections("docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
		if !slices.Contains(sections, rule.Alert) {
			t.Errorf("docs/runbook.md has no section for %s", rule.Alert)
		}
		if want := "/docs/runbook.md#" + strings.ToLower(rule.Alert); !strings.HasSuffix(rule.Annotations["runbook_url"], want) {
			t.Errorf("the runbook of %s is %q, want it to end in %s", rule.Alert, rule.Annotations["runbook_url"], want)
		}
	}
	for _, section := range sections {
		if !slices.Contains(alerts, section) {
			t.Errorf("docs/runbook.md has a section for %s, which is no alert", section)
		}
	}
}

func TestEveryAlertSaysHowBadItIsAndWhatItMeans(t *testing.T) {
	for _, rule := range rules(t) {
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"info", "warning", "critical"}, severity) {
			t.Errorf("%s is of severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", rule.Alert)
		}
	}
}

func TestEveryAlertIsTriedBothWays(t *testing.T) {
	trials, err := Trials()
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]map[bool]bool{}
	for _, trial := range trials {
		if tried[trial.Alert] == nil {
			tried[trial.Alert] = map[bool]bool{}
		}
		tried[trial.Alert][len(trial.Fires) > 0] = true
	}
	for _, rule := range rules(t) {
		for fires, what := range map[bool]string{true: "fires", false: "does not fire"} {
			if !tried[rule.Alert][fires] {
				t.Errorf("test/monitoring/alerts.yaml has no moment at which %s %s", rule.Alert, what)
			}
		}
	}
}

func TestTheDashboardShowsEveryMetricThatIsDocumented(t *testing.T) {
	queries, err := Queries()
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, query := range queries {
		shown = append(shown, MetricNames(query.Expr)...)
	}
	metrics, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range metrics {
		isShown := func(name string) bool { return name == metric.Name || strings.HasPrefix(name, metric.Name+"_") }
		if !slices.ContainsFunc(shown, isShown) {
			t.Errorf("no panel shows %s", metric.Name)
		}
	}
}

func TestMetricNamesLeavesOutWhatIsNoMetric(t *testing.T) {
	for query, want := range map[string][]string{
		`time() - max by (environment) (a_seconds > 0) > 600`:                                {"a_seconds"},
		`sum(rate(a_total{code=~"b|c{}", d!=""}[10m])) / on (job, e) group_left (f) b:c`:     {"a_total", "b:c"},
		`(a unless a offset 10m) or increase(b[$__rate_interval] offset 5m) and on (x) c`:    {"a", "b", "c"},
		`histogram_quantile(0.9, sum by (le) (rate(a_bucket{x="\"y\""}[1h]))) > 1e3 * 5`:     {"a_bucket"},
		`label_replace(sum without (state) (a), "resource", "CPU", "", "") > bool 0.9`:       {"a"},
		"absent(\n  a{name=\"vmwarden-webhook\"}\n) or b == 1\nunless ignoring (le) c_count": {"a", "b", "c_count"},
	} {
		if got := MetricNames(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestSelectorsKeepTheLabelsThatAreAskedFor(t *testing.T) {
	for query, want := range map[string][]string{
		`max by (a) (a{b=~"c|d{}", e!="\"f\""}) and a == 1`:                          {"a", `a{b=~"c|d{}", e!="\"f\""}`},
		`sum(rate(b_total{c="a"}[10m])) / on (a) b_total{c="a"} unless d offset 10m`: {`b_total{c="a"}`, "d"},
	} {
		if got := Selectors(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
