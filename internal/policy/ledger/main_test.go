package ledger

import (
	"flag"
	"os"
	"testing"
)

// checks is how many histories a property is tried on, unless -rapid.checks says otherwise: a ledger without one of its safety
// steps is found out within this number for most of the steps, and within a few thousand for the rest.
const checks = "500"

func TestMain(m *testing.M) {
	// Before the command line is read, so that it has the last word.
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
