package main

import (
	"errors"
	"strings"
	"testing"
)

const (
	config    = `{"config": {"go_version": "go1.26.8", "scan_level": "symbol"}}`
	known     = `{"osv": {"id": "GO-1", "summary": "It falls over"}} {"osv": {"id": "GO-2", "summary": "It lies down"}}`
	inModule  = `{"finding": {"osv": "GO-1", "fixed_version": "v0.60.0", "trace": [{"module": "golang.org/x/net", "version": "v0.49.0", "function": "Read"}, {"module": "ours"}]}}`
	unfixed   = `{"finding": {"osv": "GO-1", "trace": [{"module": "golang.org/x/net", "version": "v0.49.0", "function": "Read"}]}}`
	inLibrary = `{"finding": {"osv": "GO-2", "fixed_version": "v1.26.10", "trace": [{"module": "stdlib", "version": "v1.26.8", "function": "Serve"}]}}`
	required  = `{"finding": {"osv": "GO-1", "fixed_version": "v0.60.0", "trace": [{"module": "golang.org/x/net", "version": "v0.49.0"}]}}`
)

func TestWhatIsReachedIsAFaultWhereGoModCanDoAwayWithIt(t *testing.T) {
	for _, test := range []struct {
		name, scan, toolchain string
		fault                 bool
		want                  string
	}{
		{"nothing", config + known, "go1.26.10", false, "0 known vulnerabilities are reached; 0 more"},
		{"a module", config + known + inModule + inModule, "go1.26.10", true, "GO-1 in golang.org/x/net v0.49.0: It falls over (take v0.60.0 or newer)\n1 known"},
		{"a module without a newer version", config + known + unfixed, "go1.26.10", true, "(there is no version without it yet)"},
		{"what is not called", config + known + required, "go1.26.10", false, "0 known vulnerabilities are reached; 1 more"},
		{"the Go of this machine", config + known + inLibrary, "go1.26.10", false, "WARNING: this is go1.26.8, with 1 known vulnerabilities that are gone in go1.26.10"},
		{"the Go that go.mod names", config + known + inLibrary, "go1.26.9", true, "GO-2 in stdlib v1.26.8: It lies down (take v1.26.10 or newer)"},
	} {
		result, err := read(strings.NewReader(test.scan))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var told strings.Builder
		err = result.report(&told, test.toolchain)
		if errors.Is(err, errReached) != test.fault || !strings.Contains(told.String(), test.want) {
			t.Errorf("%s: %v, and told\n%s\nwant a fault: %t, and %q", test.name, err, told.String(), test.fault, test.want)
		}
	}
}

func TestAScanThatCouldFindNothingIsNotClean(t *testing.T) {
	for name, scan := range map[string]string{
		"no scan":         "",
		"no database":     config,
		"modules alone":   `{"config": {"go_version": "go1.26.8", "scan_level": "module"}}` + known,
		"half of a value": config + known + inModule[:40],
	} {
		if _, err := read(strings.NewReader(scan)); err == nil {
			t.Errorf("%s: it is read as a scan", name)
		}
	}
}
