package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	teachers = 3
	// stepsOfTeacher is how many steps each takes, if a fault lets it.
	stepsOfTeacher = 40
	// lesson bounds the time under a fault: where every step waits for its time limit, fewer are taken.
	lesson = 15 * time.Second
)

// fault is one thing that breaks.
type fault struct {
	// name is that of its row in docs/reliability.md.
	name string
	// inject breaks it and gives what puts it right again.
	inject func(t *testing.T, w *world) (heal func())
	// expect judges what was seen meanwhile, besides what holds under every fault.
	expect func(t *testing.T, counts map[string]int, passes map[int]int)
}

// world is what a fault may meddle with.
type world struct {
	*school
	reapers []*reaper
	// during is done at random moments while the fault lasts; nil: nothing.
	during func() error
	// interruptions are when an API server died.
	interruptions []time.Time
}

// suffer runs a school under a fault and judges what came of it.
func suffer(t *testing.T, f fault, seed uint64) {
	t.Helper()
	empty(t)
	t.Cleanup(func() { empty(t) })
	recording, err := shared.Record(t.Context())
	must(t, err)
	w := &world{school: newSchool(t, seed), reapers: newReapers(t)}
	w.teach(t.Context(), 20)
	before, _ := w.seen.take()
	if before["admitted"] == 0 {
		t.Fatalf("nothing was admitted before the fault: %v", before)
	}
	heal := f.inject(t, w)
	w.work(t)
	counts, passes := w.seen.take()
	heal()
	t.Logf("| %s | %s | passes ended with %s |", f.name, counted(counts), counted(passes))
	if f.expect != nil {
		f.expect(t, counts, passes)
	}
	settle(t)
	expectInvariants(t, recording, w.interruptions)
}

// work lets teachers, passes and what happens at random go on together.
func (w *world) work(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	lessonContext, over := context.WithTimeout(ctx, lesson)
	defer over()
	var all, taught sync.WaitGroup
	for range teachers {
		taught.Go(func() { w.teach(lessonContext, stepsOfTeacher) })
	}
	done := make(chan struct{})
	for _, r := range w.reapers {
		all.Go(func() {
			// One pass sees whatever the fault is; more follow while there is something to see.
			for more := true; more; {
				w.seen.pass(r.pass(ctx))
				select {
				case <-done:
					more = false
				default:
				}
			}
		})
	}
	if w.during != nil {
		all.Go(func() {
			for {
				pause := time.NewTimer(time.Duration(50+w.draw(400)) * time.Millisecond)
				select {
				case <-pause.C:
					if err := w.during(); err != nil {
						t.Errorf("breaking something: %v", err)
						return
					}
				case <-done:
					pause.Stop()
					return
				}
			}
		})
	}
	taught.Wait()
	close(done)
	all.Wait()
}

// counted writes counts in a stable order.
func counted[K comparable](counts map[K]int) string {
	var parts []string
	for key, n := range counts {
		parts = append(parts, fmt.Sprintf("%v: %d", key, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// onlyStatuses expects no other exit statuses than these; one that had to be killed is none of them.
func onlyStatuses(t *testing.T, passes map[int]int, wanted ...int) {
	t.Helper()
	for status, n := range passes {
		if !slices.Contains(wanted, status) {
			t.Errorf("%d passes ended with status %d, want only %v", n, status, wanted)
		}
	}
}
