package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/status"
)

// printStatus prints the last passes and ends as the last one did.
func printStatus(ctx context.Context, s settings) error {
	found, err := readStatus(ctx, s)
	if err != nil {
		return err
	}
	if s.html {
		err = writePage(ctx, s, found)
	} else {
		err = printStatusTo(s, found)
	}
	if err != nil {
		return err
	}
	if len(found.Passes) == 0 {
		return fmt.Errorf("no pass of environment %s has ever run; its CronJob starts one a minute, 'reapjob run' one by hand", s.environment.Name)
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

func readStatus(ctx context.Context, s settings) (status.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Reaping.ItemTimeout.Duration)
	defer cancel()
	core, err := corev1client.NewForConfig(s.cluster)
	if err != nil {
		return status.Status{}, fmt.Errorf("making the client: %w", err)
	}
	return statusStore(core, s).Read(ctx)
}

// writePage writes the page of what the status tells, and the logs. One that cannot be read keeps nothing else off the page, which is
// written before the error is told.
func writePage(ctx context.Context, s settings, found status.Status) error {
	history := status.NewHistory(found, s.since)
	var problems []error
	for _, file := range s.logs {
		problems = append(problems, cli.ReadLog(ctx, history, file, s.stdin, s.progress))
	}
	cli.NoticeBroken("reapjob", s.stderr, history.Broken)
	// The page is written in many small pieces.
	buffered := bufio.NewWriter(s.stdout)
	problems = append(problems, history.WritePage(buffered, s.clock.Now()))
	if err := buffered.Flush(); err != nil {
		problems = append(problems, fmt.Errorf("writing the page: %w", err))
	}
	return errors.Join(problems...)
}
