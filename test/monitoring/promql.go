package monitoring

import (
	"regexp"
	"slices"
)

// What stands in a query beside the names of metrics and functions, to be taken out in this order. That the queries are PromQL at
// all is promtool's to say.
var notNames = []*regexp.Regexp{
	regexp.MustCompile(`"(\\.|[^"\\])*"`),
	regexp.MustCompile(`\{[^}]*\}`),
	regexp.MustCompile(`\[[^\]]*\]`),
	regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`),
	regexp.MustCompile(`\b(and|or|unless|bool|offset)\b`),
	// A function's name has a bracket behind it.
	regexp.MustCompile(`\b[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(`),
}

var name = regexp.MustCompile(`\b[a-zA-Z_:][a-zA-Z0-9_:]*\b`)

// selector is a metric's name with the labels that it is asked for, if any.
var selector = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)(\{("(\\.|[^"\\])*"|[^}"])*\})?`)

// Selectors gives what a PromQL query asks for, each once: a metric, and the labels that its series are to have.
func Selectors(query string) []string {
	names := MetricNames(query)
	var selectors []string
	for _, found := range selector.FindAllStringSubmatch(query, -1) {
		if slices.Contains(names, found[1]) {
			selectors = append(selectors, found[0])
		}
	}
	slices.Sort(selectors)
	return slices.Compact(selectors)
}

// MetricNames gives the metrics that a PromQL query asks for, each once.
func MetricNames(query string) []string {
	for _, other := range notNames {
		query = other.ReplaceAllString(query, " ")
	}
	names := name.FindAllString(query, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
