// Command queries writes the dashboard's queries as a file of recording rules, for promtool to check: without it, a mistake in
// a query would show only to whoever opens the dashboard.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/test/monitoring"
)

type rule struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

func main() {
	content, err := rules()
	if err == nil {
		_, err = os.Stdout.Write(content)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "queries:", err)
		os.Exit(1)
	}
}

func rules() ([]byte, error) {
	queries, err := monitoring.Queries()
	if err != nil {
		return nil, err
	}
	dashboard := group{Name: "dashboard"}
	for i, query := range queries {
		// promtool takes two rules of one name and no labels for one, and names the rule in which it finds a mistake.
		dashboard.Rules = append(dashboard.Rules, rule{Record: fmt.Sprintf("query%d", i), Expr: query.Filled()})
	}
	content, err := yaml.Marshal(map[string][]group{"groups": {dashboard}})
	if err != nil {
		return nil, fmt.Errorf("writing the queries as rules: %w", err)
	}
	return content, nil
}
