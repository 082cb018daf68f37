// Package monitoring reads what is shipped for Prometheus and Grafana, and what is written about it, so that the tests can hold
// them against each other and against what a replica exports.
package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"sigs.k8s.io/yaml"
)

// Rule is an alerting rule.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Rules gives the alerting rules in their order.
func Rules() ([]Rule, error) {
	var file struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := readYAML("charts/vmwarden/files/alerts.yaml", &file); err != nil {
		return nil, err
	}
	var rules []Rule
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

// Trial is one expectation of the rules' tests: at some moment of a made-up course of events an alert fires so many times.
type Trial struct {
	Alert string     `json:"alertname"`
	Fires []struct{} `json:"exp_alerts"`
}

// Trials gives the expectations of the rules' tests.
func Trials() ([]Trial, error) {
	var file struct {
		Tests []struct {
			Trials []Trial `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := readYAML("test/monitoring/alerts.yaml", &file); err != nil {
		return nil, err
	}
	var trials []Trial
	for _, test := range file.Tests {
		trials = append(trials, test.Trials...)
	}
	return trials, nil
}

// Query is a query of the dashboard.
type Query struct {
	Panel, Expr string
}

// Grafana fills these in; whatever it fills in is PromQL of this kind.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$environment", "prod|dev", "$reason", "expired|orphan")

// Filled is the query as Prometheus is asked it.
func (q Query) Filled() string { return variables.Replace(q.Expr) }

// RulesFile is the path of the file that Rules reads.
func RulesFile() string { return path("charts/vmwarden/files/alerts.yaml") }

// Queries gives the dashboard's queries in their order.
func Queries() ([]Query, error) {
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	content, err := read("charts/vmwarden/files/dashboard.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return nil, fmt.Errorf("reading the dashboard: %w", err)
	}
	var queries []Query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, Query{Panel: panel.Title, Expr: target.Expr})
		}
	}
	return queries, nil
}

// Sections gives a document's headings of the second level. The document is named from the module's root.
func Sections(document string) ([]string, error) {
	content, err := read(document)
	if err != nil {
		return nil, err
	}
	var sections []string
	for _, match := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllSubmatch(content, -1) {
		sections = append(sections, string(match[1]))
	}
	return sections, nil
}

// Metric is a row of docs/metrics.md.
type Metric struct {
	Name, Type string
	Labels     []string
	// Leader: the leader alone exports it.
	Leader bool
}

// metricRow is a row: name, type, labels, who exports it, meaning.
var metricRow = regexp.MustCompile("(?m)^\\| `(vmwarden_[a-z0-9_]+)` \\| (\\w+) \\| *([^|]*?) *\\| (every replica|leader) \\| [^|]+ \\|$")

// Metrics gives vmwarden's own metrics as docs/metrics.md has them.
func Metrics() ([]Metric, error) {
	content, err := read("docs/metrics.md")
	if err != nil {
		return nil, err
	}
	var metrics []Metric
	for _, row := range metricRow.FindAllStringSubmatch(string(content), -1) {
		metric := Metric{Name: row[1], Type: row[2], Leader: row[4] == "leader"}
		for label := range strings.SplitSeq(row[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				metric.Labels = append(metric.Labels, label)
			}
		}
		metrics = append(metrics, metric)
	}
	if len(metrics) == 0 {
		return nil, fmt.Errorf("docs/metrics.md has no row that can be read")
	}
	return metrics, nil
}

func readYAML(name string, into any) error {
	content, err := read(name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// path is where a file is that is named from the module's root.
func path(name string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..", name)
}

func read(name string) ([]byte, error) {
	content, err := os.ReadFile(path(name))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return content, nil
}
