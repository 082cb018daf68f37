package main

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/internal/version"
)

// runPass runs one pass and prints its report.
func runPass(ctx context.Context, s settings) error {
	pass, store, err := newPass(ctx, s)
	if err != nil {
		return err
	}
	if store == nil {
		return finish(s, pass.Run(ctx))
	}
	defer store.Close()
	var report reap.Report
	alone, err := store.Alone(ctx, pass.Settings.ItemTimeout, func() { report = pass.Run(ctx) })
	if err != nil {
		// Without the database there is nothing that a second pass could do twice: only deadlines are looked at.
		s.log.Warn("the lock against a second pass could not be taken", zap.Error(err))
		return finish(s, pass.Run(ctx))
	}
	if !alone {
		_, err := fmt.Fprintf(s.stdout, "environment %s: another pass is at work; nothing to do for this one\n", s.environment.Name)
		return err
	}
	return finish(s, report)
}

// printPlan prints what runPass would do.
func printPlan(ctx context.Context, s settings) error {
	pass, store, err := newPass(ctx, s)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, pass.Settings.PassTimeout)
	defer cancel()
	plan := reap.MakePlan(pass.Read(ctx), pass.Settings)
	if err := printDocument(s, plan.Document(s.environment.Name)); err != nil {
		return err
	}
	// The holds alone decide, as they would after a run in which no item failed.
	return exit(reap.Report{Holds: plan.Holds}.ExitStatus())
}

func newPass(ctx context.Context, s settings) (*reap.Pass, *reap.PostgresStore, error) {
	s.log.Info("starting", zap.String("version", version.String()), zap.String("environment", s.environment.Name), zap.Any("configuration", s.config))
	client, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client: %w", err)
	}
	contract := s.config.Contract()
	pass := &reap.Pass{
		Cluster:  &reap.Cluster{Client: client, Contract: contract},
		Contract: contract,
		Settings: reap.NewSettings(s.config, s.environment.Name, s.released),
		Clock:    clock.RealClock{},
		Log:      s.log,
	}
	if !*s.environment.SessionsDatabase {
		return pass, nil, nil
	}
	store, err := reap.OpenStore(ctx, s.databaseURL, s.config.Database, s.config.Reaping.Concurrency)
	if err != nil {
		return nil, nil, err
	}
	pass.Store = store
	return pass, store, nil
}

func finish(s settings, report reap.Report) error {
	if err := printDocument(s, report.Document()); err != nil {
		return err
	}
	return exit(report.ExitStatus())
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
