package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// recountInterval is how old the numbers of the metrics may become where nobody creates anything.
const recountInterval = 30 * time.Second

// recount keeps the metrics' numbers from growing old: a place that is given back is no decision. It is a runnable of
// a controller-runtime manager.
type recount struct {
	places  *ledger.Ledger
	metrics *policy.CapMetrics
	log     *zap.Logger
}

// Start counts now and then until the context ends.
func (r *recount) Start(ctx context.Context) error {
	ticker := time.NewTicker(recountInterval)
	defer ticker.Stop()
	for {
		r.count(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is false: every replica has metrics.
func (r *recount) NeedLeaderElection() bool { return false }

func (r *recount) count(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ledger.DecisionTimeout)
	defer cancel()
	tally, err := r.places.Survey(ctx)
	if err != nil {
		r.log.Warn("the virtual machines could not be counted for the metrics, which keep their last numbers", zap.Error(err))
		return
	}
	r.metrics.Counted(tally)
}
