package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// reapjob runs reapjob as an environment's reaper with -o json and gives its result.
func reapjob(t *testing.T, environment string, arguments ...string) (reap.Document, lab.Run) {
	t.Helper()
	return reapjobWith(t, environment, shared.ReaperURL(environment), lab.Config, arguments...)
}

func reapjobWith(t *testing.T, environment, databaseURL, configuration string, arguments ...string) (reap.Document, lab.Run) {
	t.Helper()
	run, err := shared.ReapjobWith(t.Context(), environment, databaseURL, configuration, append(arguments, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var document reap.Document
	if err := json.Unmarshal([]byte(run.Stdout), &document); err != nil {
		t.Fatalf("stdout is no JSON: %v\n%s\n%s", err, run.Stdout, run.Stderr)
	}
	return document, run
}

func expectExit(t *testing.T, run lab.Run, want int) {
	t.Helper()
	if run.Status != want {
		t.Errorf("exit status %d, want %d\n%s\n%s", run.Status, want, run.Stdout, run.Stderr)
	}
}

// results are the items as lines of direction, session's first characters and result.
func results(document reap.Document) []string {
	lines := []string{}
	for _, item := range document.Items {
		lines = append(lines, fmt.Sprintf("%s %s %s", item.Direction, item.Session[:8], item.Result))
	}
	slices.Sort(lines)
	return lines
}

// holds are the directions held back, with their cause.
func holds(document reap.Document) string {
	var all []string
	for _, hold := range document.Holds {
		all = append(all, fmt.Sprintf("%s %s", hold.Direction, hold.Cause))
	}
	return strings.Join(all, ", ")
}

// pass is a pass in this process, as the environment's reaper, for tests that act between its steps.
func pass(t *testing.T, environment string) *reap.Pass {
	t.Helper()
	parsed, err := config.Parse([]byte(lab.Config))
	if err != nil {
		t.Fatal(err)
	}
	account, err := shared.ReaperConfig(t.Context(), environment)
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	store, err := reap.OpenStore(t.Context(), shared.ReaperURL(environment), parsed.Database, environment, parsed.Reaping.Concurrency)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(contextAfter(t)) })
	return &reap.Pass{
		Cluster:  &reap.Cluster{Client: client, Contract: parsed.Contract()},
		Store:    store,
		Contract: parsed.Contract(),
		Settings: reap.NewSettings(parsed, environment, nil),
		Clock:    clock.RealClock{},
		Log:      zaptest.NewLogger(t),
	}
}

// plan reads and plans until the number of actions is as expected: an orphan must come of age first.
func plan(t *testing.T, p *reap.Pass, actions int) reap.Plan {
	t.Helper()
	var made reap.Plan
	await(t, fmt.Sprintf("a plan of %d actions", actions), func(ctx context.Context) error {
		made = reap.MakePlan(p.Read(ctx), p.Settings)
		if len(made.Actions) != actions {
			return fmt.Errorf("%d actions: %+v, holds %+v", len(made.Actions), made.Actions, made.Holds)
		}
		return nil
	})
	return made
}

// comeOfAge waits until the session's machine is old enough to be taken for an orphan.
func comeOfAge(t *testing.T, session string) {
	t.Helper()
	born := machine(t, backend.Lesson{Session: session}.VMName()).CreationTimestamp
	await(t, "the machine comes of age", func(context.Context) error {
		// Creation times are whole seconds; the configuration's minimum age is one.
		if age := time.Since(born.Time); age < 2*time.Second {
			return fmt.Errorf("it is %s old", age)
		}
		return nil
	})
}

// result is the only item's result.
func result(t *testing.T, report reap.Report) reap.Item {
	t.Helper()
	if len(report.Items) != 1 {
		t.Fatalf("%d items, want 1: %+v", len(report.Items), report.Items)
	}
	return report.Items[0]
}
