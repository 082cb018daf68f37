// Command vulnerabilities judges what govulncheck found: it reads the scan as JSON from standard input, says in a line each which known
// vulnerabilities our own code reaches, and fails where one of them is ours to do away with, by another version in go.mod.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	toolchain := flag.String("toolchain", "", "the Go release that go.mod names, such as go1.26.10; required")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: govulncheck -format json ./cmd/... | vulnerabilities -toolchain RELEASE\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *toolchain == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	scan, err := read(os.Stdin)
	if err == nil {
		err = scan.report(os.Stdout, *toolchain)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

// errReached means that what was found is ours to do away with.
var errReached = errors.New("known vulnerabilities are reached, and a version in go.mod is to be raised")
