// Command bench measures what vmwarden costs, on a real control plane and a real PostgreSQL, and prints what came out beside what was
// aimed at. Whatever is compared is measured in turns within one run. docs/performance.md tells how to read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	clientrest "k8s.io/client-go/rest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sizes are how much is measured.
type sizes struct {
	rounds, standing        int
	bursts, burst           int
	machines, secrets       int
	passes, expired, listed int
	handlerRounds           int
	pause                   time.Duration
	concurrency             int
}

// part is one of the things that are measured.
type part struct {
	name    string
	measure func(context.Context, sizes, *report) error
}

var parts = []part{{"handlers", measureHandlers}, {"creates", measureCreates}, {"burst", measureBurst}, {"memory", measureMemory}, {"pass", measurePass}}

func run(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(arguments) > 0 && arguments[0] == serveCommand {
		return serve(ctx, arguments[1:])
	}
	var s sizes
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&only, "only", "", "parts to measure, with commas: handlers, creates, burst, memory, pass (default all)")
	flags.IntVar(&s.handlerRounds, "handler-rounds", 200, "rounds of the handlers, each of 50 creations a pair")
	flags.IntVar(&s.rounds, "rounds", 100, "rounds of the creates: in each, every variant creates one virtual machine")
	flags.DurationVar(&s.pause, "pause", 120*time.Millisecond, "pause before each create and each pass with nothing due")
	flags.IntVar(&s.standing, "standing", 100, "virtual machines that stand while the creates are measured again")
	flags.IntVar(&s.bursts, "bursts", 5, "bursts")
	flags.IntVar(&s.burst, "burst", 200, "creates of a burst")
	flags.IntVar(&s.machines, "machines", 1000, "virtual machines in the namespace while the webhook's memory is measured")
	flags.IntVar(&s.secrets, "secrets", 10000, "Secrets in the namespace while the webhook's memory is measured")
	flags.IntVar(&s.passes, "passes", 20, "passes with nothing due")
	flags.IntVar(&s.expired, "expired", 10000, "expired sessions of the longest pass")
	flags.IntVar(&s.listed, "listed", 50000, "objects that are listed and planned")
	flags.IntVar(&s.concurrency, "concurrency", 4, "what a pass and the bare loop of deletes do at once (reaping.concurrency)")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	// What the webhook warns of is no concern of whoever measures it.
	clientrest.SetDefaultWarningHandler(clientrest.NoWarnings{})
	r := newReport(os.Stdout)
	for _, part := range chosen {
		started := time.Now()
		fmt.Fprintf(os.Stderr, "== %s\n", part.name)
		if err := part.measure(ctx, s, r); err != nil {
			return errors.Join(fmt.Errorf("measuring %s: %w", part.name, err), r.write())
		}
		fmt.Fprintf(os.Stderr, "== %s took %s\n", part.name, time.Since(started).Round(time.Second))
	}
	return r.write()
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %q: use handlers, creates, burst, memory or pass", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}
