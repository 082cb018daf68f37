package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/internal/policy/offline"
	"github.com/ttlab/vmwarden/internal/terminal"
)

// writeOutcomes writes a table for people: a line an object, its reasons below it, and what would be added as a diff.
func writeOutcomes(out io.Writer, outcomes []offline.Outcome) error {
	var page bytes.Buffer
	columns := tabwriter.NewWriter(&page, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "OBJECT\tDECISION\tCODE\tFIELD\tWHY")
	for _, outcome := range outcomes {
		if outcome.Allowed {
			fmt.Fprintf(columns, "%s\tallowed\t\t\t\n", describe(outcome))
		}
		for _, cause := range outcome.Causes {
			fmt.Fprintf(columns, "%s\tDENIED\t%s\t%s\t%s\n", describe(outcome), cause.Code, terminal.Printable(cause.Field), terminal.Printable(cause.Message))
		}
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, outcome := range outcomes {
		for _, warning := range outcome.Warnings {
			fmt.Fprintf(&page, "\nWarning: %s\n", terminal.Printable(warning))
		}
		diff, err := stampDiff(outcome)
		if err != nil {
			return err
		}
		if diff != "" {
			fmt.Fprintln(&page)
		}
		for line := range strings.Lines(diff) {
			fmt.Fprintln(&page, terminal.Printable(strings.TrimSuffix(line, "\n")))
		}
	}
	if _, err := page.WriteTo(out); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// stampDiff is what would be added to the object, as a unified diff of its YAML; empty for nothing.
func stampDiff(outcome offline.Outcome) (string, error) {
	if outcome.Patch == nil {
		return "", nil
	}
	before, err := yaml.Marshal(outcome.Before.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", describe(outcome), err)
	}
	after, err := yaml.Marshal(outcome.After.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", describe(outcome), err)
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)),
		FromFile: describe(outcome) + " as sent", ToFile: describe(outcome) + " as stored", Context: 2,
	})
	if err != nil {
		return "", fmt.Errorf("comparing %s: %w", describe(outcome), err)
	}
	return diff, nil
}

// writeOutcomesJSON writes the outcomes for programs.
func writeOutcomesJSON(out io.Writer, outcomes []offline.Outcome) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{"objects": outcomes}); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
