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

// MetricNames gives the metrics that a PromQL query asks for, each once.
func MetricNames(query string) []string {
	for _, other := range notNames {
		query = other.ReplaceAllString(query, " ")
	}
	names := name.FindAllString(query, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
