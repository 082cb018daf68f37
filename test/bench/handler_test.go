package main

import (
	"testing"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// BenchmarkHandlers is the handlers' part of `make bench` for a profiler: -cpuprofile and -memprofile work on it.
func BenchmarkHandlers(b *testing.B) {
	log := zap.NewNop()
	ctrllog.SetLogger(zapr.NewLogger(log))
	rules, err := rulesPair(log)
	if err != nil {
		b.Fatal(err)
	}
	both, err := reviewsOf(b.Context(), rules)
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]pair{"idle": idlePair(), "rules": rules} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				both.askBoth(b.Context(), p)
			}
		})
	}
	b.Logf("the reviews have %d and %d bytes", len(both.mutating), len(both.validating))
}
