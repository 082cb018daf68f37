package faults

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	// seedVariable repeats a run's choices.
	seedVariable = "VMWARDEN_TEST_SEED"
	// soakVariable says for how long TestSoak goes on; without it, it is no part of a run.
	soakVariable = "VMWARDEN_SOAK"
)

func seed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv(seedVariable)
	if given == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	return seed
}

func TestUnderEachFaultTheInvariantsHold(t *testing.T) {
	seed := seed(t)
	t.Logf("seed %d; to run it again, set %s", seed, seedVariable)
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) { suffer(t, f, seed) })
	}
}

// TestSoak is for `make soak`: faults come one after the other, in any order, for as long as it is told to.
func TestSoak(t *testing.T) {
	value := os.Getenv(soakVariable)
	if value == "" {
		t.Skipf("this is for make soak: %s says for how long", soakVariable)
	}
	duration, err := time.ParseDuration(value)
	if err != nil {
		t.Fatalf("%s: %v", soakVariable, err)
	}
	seed := seed(t)
	t.Logf("seed %d; to run it again, set %s", seed, seedVariable)
	random := rand.New(rand.NewPCG(seed, 1))
	all := faults()
	for end := time.Now().Add(duration); time.Now().Before(end) && !t.Failed(); {
		f := all[random.IntN(len(all))]
		t.Run(f.name, func(t *testing.T) { suffer(t, f, random.Uint64()) })
	}
}
