package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// standardLibrary is what govulncheck calls Go's own packages where others have the name of their module.
const standardLibrary = "stdlib"

// found is a vulnerability in a module that our code reaches.
type found struct {
	id, module string
	// version is what is used, fixed the first that is without it, or empty.
	version, fixed string
}

// scan is what govulncheck says, as far as it matters here.
type scan struct {
	// goVersion is the Go release that built the code, or would.
	goVersion string
	// reached are those that a call leads to; others counts those in what is merely required or imported.
	reached   []found
	others    int
	summaries map[string]string
}

// message is one of the values that govulncheck writes, one after the other: in each one field is set.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
		ScanLevel string `json:"scan_level"`
	} `json:"config"`
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		// Trace leads from the vulnerable function to ours; without a function it only says that the module or package is there.
		Trace []struct {
			Module   string `json:"module"`
			Version  string `json:"version"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

// read takes a scan apart. One that looked for nothing, or knew of nothing, is an error: it would be clean.
func read(from io.Reader) (*scan, error) {
	result := &scan{summaries: map[string]string{}}
	reached, present := map[found]bool{}, map[string]bool{}
	decoder := json.NewDecoder(from)
	for {
		var next message
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the scan: %w", err)
		}
		switch {
		case next.Config != nil:
			if result.goVersion = next.Config.GoVersion; next.Config.ScanLevel != "symbol" {
				return nil, fmt.Errorf("the scan is of level %q, want symbol: it does not say what is reached", next.Config.ScanLevel)
			}
		case next.OSV != nil:
			result.summaries[next.OSV.ID] = next.OSV.Summary
		case next.Finding != nil && len(next.Finding.Trace) > 0:
			at := next.Finding.Trace[0]
			present[next.Finding.OSV] = true
			if at.Function != "" {
				reached[found{next.Finding.OSV, at.Module, at.Version, next.Finding.FixedVersion}] = true
			}
		}
	}
	if result.goVersion == "" {
		return nil, errors.New("the scan does not say with which Go it was made")
	}
	if len(result.summaries) == 0 {
		return nil, errors.New("the scan knew of no vulnerability at all: its database is empty")
	}
	result.reached = slices.SortedFunc(maps.Keys(reached), func(a, b found) int {
		return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.id, b.id))
	})
	for _, one := range result.reached {
		delete(present, one.id)
	}
	result.others = len(present)
	return result, nil
}
