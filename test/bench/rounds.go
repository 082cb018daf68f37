package main

import (
	"context"
	"slices"
	"time"
)

// inTurns measures variants in rounds, each once in every round and each first in its turn, so that a drift is one of all of
// them. It gives each variant's times.
func inTurns(rounds, variants int, measure func(variant, round int) (time.Duration, error)) ([]times, error) {
	all := make([]times, variants)
	for round := range rounds {
		for i := range variants {
			variant := (i + round) % variants
			took, err := measure(variant, round)
			if err != nil {
				return nil, err
			}
			all[variant] = append(all[variant], took)
		}
	}
	return all, nil
}

// rest lets time go by, so that what is measured next owes nothing to what was before.
func rest(ctx context.Context, pause time.Duration) error {
	over := time.NewTimer(pause)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// times are measurements of one thing.
type times []time.Duration

// at gives the time that so many percent of the measurements stay within.
func (t times) at(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func (t times) median() time.Duration { return t.at(50) }

// over is how many times as long as the other the median of this one takes.
func (t times) over(other times) float64 {
	return float64(t.median()) / float64(other.median())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
