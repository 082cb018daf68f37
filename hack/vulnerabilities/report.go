package main

import (
	"fmt"
	"go/version"
	"io"
	"strings"
)

// report says what was found. What is in a module is gone with a newer one. What is in the standard library is gone with a newer Go, and is no
// fault where the release that go.mod names is new enough: the machine that checks may have an older one, and is told.
func (s *scan) report(to io.Writer, toolchain string) error {
	faults, older := 0, 0
	for _, one := range s.reached {
		if one.module == standardLibrary && one.fixed != "" && version.Compare(release(one.fixed), toolchain) <= 0 {
			older++
			continue
		}
		faults++
		remedy := "there is no version without it yet"
		if one.fixed != "" {
			remedy = "take " + one.fixed + " or newer"
		}
		if _, err := fmt.Fprintf(to, "%s in %s %s: %s (%s)\n", one.id, one.module, one.version, s.summaries[one.id], remedy); err != nil {
			return err
		}
	}
	if older > 0 {
		if _, err := fmt.Fprintf(to, "WARNING: this is %s, with %d known vulnerabilities that are gone in %s, which go.mod names: build with that whatever you give away\n",
			s.goVersion, older, toolchain); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(to, "%d known vulnerabilities are reached; %d more are in what is required, and are not\n", faults, s.others); err != nil {
		return err
	}
	if faults > 0 {
		return errReached
	}
	return nil
}

// release is Go's name for a version of its standard library.
func release(module string) string { return "go" + strings.TrimPrefix(module, "v") }
