package main

import (
	"context"
	"fmt"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/status"
)

// printStatus prints the last passes and ends as the last one did.
func printStatus(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Reaping.ItemTimeout.Duration)
	defer cancel()
	core, err := corev1client.NewForConfig(s.cluster)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	found, err := statusStore(core, s).Read(ctx)
	if err != nil {
		return err
	}
	if err := printStatusTo(s, found); err != nil {
		return err
	}
	if len(found.Passes) == 0 {
		return fmt.Errorf("no pass of environment %s has ever run", s.environment.Name)
	}
	if last := found.Passes[0].ExitStatus; last != cli.ExitOK {
		return &cli.StatusError{Status: last, Err: fmt.Errorf("the last pass was not clean (exit status %d)", last)}
	}
	return nil
}

func printStatusTo(s settings, found status.Status) error {
	if s.json {
		return found.WriteJSON(s.stdout)
	}
	return found.WriteTable(s.stdout, clock.RealClock{}.Now())
}
