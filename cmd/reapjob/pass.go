package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/metadata"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/internal/version"
)

// runPass runs one pass and reports it. All of it ends before the pass's time limit, whatever hangs: the work early enough for
// the reports.
func runPass(ctx context.Context, s settings) error {
	if s.config.Mode == config.Audit {
		s.log.Warn("mode is Audit: this pass is only planned, nothing is deleted or written")
		return printPlan(ctx, s)
	}
	timeout := s.config.Reaping.PassTimeout.Duration
	whole, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pass, store, err := newPass(whole, s)
	if err != nil {
		return err
	}
	pass.Progress = progressOn(s.progress)
	work, stopWork := context.WithTimeout(whole, timeout-pass.Settings.ReportTimeout)
	defer stopWork()
	unwatch := context.AfterFunc(ctx, func() { s.log.Warn("told to stop: what was begun is finished, and no more is begun") })
	defer unwatch()
	report, alone := runAlone(work, pass, store)
	if !alone {
		// Whoever holds the lock may hang, or may be long gone and its connection not yet missed: what needs no database goes on. The
		// status is the other pass's to write; one that stays old is what the alert on missing passes goes by.
		pass.WithoutStore = "another pass is at work"
		report = pass.Run(work)
		tell(s, report)
		return exit(report.ExitStatus())
	}
	// A pass that was told to stop reports all the same.
	reporting, stopReporting := reap.BeyondCancel(whole, pass.Settings.ReportTimeout)
	defer stopReporting()
	publish(reporting, s, report)
	if store != nil {
		store.Close(reporting)
	}
	return exit(report.ExitStatus())
}

// runAlone runs the pass under the lock that keeps a second one away. Without the lock only what needs no database is done.
func runAlone(ctx context.Context, pass *reap.Pass, store *reap.PostgresStore) (report reap.Report, alone bool) {
	if store == nil {
		return pass.Run(ctx), true
	}
	alone, err := store.Alone(ctx, pass.Settings.ItemTimeout, func() { report = pass.Run(ctx) })
	if err != nil {
		pass.Log.Error("the lock against a second pass could not be taken", zap.Error(err))
		pass.StoreErr = err
		return pass.Run(ctx), true
	}
	return report, alone
}

// printPlan prints what runPass would do.
func printPlan(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Reaping.PassTimeout.Duration)
	defer cancel()
	pass, store, err := newPass(ctx, s)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close(ctx)
	}
	plan := pass.Plan(ctx)
	if err := printDocument(s, plan.Document(s.environment.Name)); err != nil {
		return err
	}
	// The holds alone decide, as they would after a run in which no item failed.
	if status := (reap.Report{Holds: plan.Holds}).ExitStatus(); status != reap.ExitClean {
		return &cli.StatusError{Status: status, Err: fmt.Errorf("a pass would hold directions back (exit status %d); the plan above says why", status)}
	}
	return nil
}

func newPass(ctx context.Context, s settings) (*reap.Pass, *reap.PostgresStore, error) {
	s.log.Info("starting", zap.String("version", version.String()), zap.String("environment", s.environment.Name), zap.Any("configuration", s.config))
	setClock(ctx, s)
	client, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client: %w", err)
	}
	contract := s.config.Contract()
	pass := &reap.Pass{
		Cluster:  &reap.Cluster{Client: client, Contract: contract},
		Contract: contract,
		Settings: reap.NewSettings(s.config, s.environment.Name, s.released),
		Clock:    s.clock,
		Log:      s.log,
	}
	if !*s.environment.SessionsDatabase {
		pass.WithoutStore = "has no sessions database"
		return pass, nil, nil
	}
	store, err := reap.OpenStore(ctx, s.databaseURL, s.config.Database, s.environment.Name, s.config.Reaping.Concurrency)
	if err != nil {
		return nil, nil, err
	}
	pass.Store = store
	return pass, store, nil
}

// clockTolerance is by how much this machine's clock may be off before it is worth a line.
const clockTolerance = 5 * time.Second

// setClock asks for the time first: ages, deadlines and the clocks' brake hang on it.
func setClock(ctx context.Context, s settings) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Reaping.ItemTimeout.Duration)
	defer cancel()
	if err := s.clock.Ask(ctx, s.cluster); err != nil {
		// Then nothing can be listed either, and the pass says so.
		s.log.Warn("the API server did not tell the time", zap.Error(err))
		return
	}
	if ahead := s.clock.Ahead(); ahead.Abs() > clockTolerance {
		s.log.Warn("this machine's clock is off; the API server's is gone by", zap.Duration("apiServerAhead", ahead))
	}
}

func printDocument(s settings, document reap.Document) error {
	if s.json {
		return document.WriteJSON(s.stdout)
	}
	return document.WriteTable(s.stdout)
}

// exit makes the status the process's own. The report, which says why, is on stdout.
func exit(status int) error {
	if status == reap.ExitClean {
		return nil
	}
	return &cli.StatusError{Status: status, Err: fmt.Errorf("the pass was not clean (exit status %d); see the report above", status)}
}
