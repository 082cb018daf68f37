package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// leavingFirst gives a context that ends some time after the other one. A replica that is to go is still sent reviews until every
// API server, and whatever carries its Service's connections, knows that it is no endpoint any more.
func leavingFirst(ctx context.Context, delay time.Duration) (context.Context, context.CancelFunc) {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(delay, cancel) })
	return serving, func() { stop(); cancel() }
}

var errLeaving = errors.New("told to stop; reviews are still answered")

// staying is a readiness check that fails from SIGTERM on.
func staying(ctx context.Context) healthz.Checker {
	return func(*http.Request) error {
		if ctx.Err() != nil {
			return errLeaving
		}
		return nil
	}
}

func addProbes(mgr manager.Manager, ready map[string]healthz.Checker) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /healthz: %w", err)
	}
	for name, check := range ready {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("adding /readyz: %w", err)
		}
	}
	return nil
}
