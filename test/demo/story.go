package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ttlab/vmwarden/test/lab"
)

// story tells steps and remembers how each came out.
type story struct {
	lab   *lab.Lab
	out   io.Writer
	steps []step

	mutex    sync.Mutex
	warnings []string
}

type step struct {
	title string
	as    string
}

// chapter begins a part of the story.
func (s *story) chapter(title string) {
	fmt.Fprintf(s.out, "\n=== %s ===\n", title)
}

// tell tells what is about to be done.
func (s *story) tell(format string, arguments ...any) {
	fmt.Fprintf(s.out, "\n%s\n", fmt.Sprintf(format, arguments...))
}

// answer shows what Kubernetes, a program or the database answered, indented below the step.
func (s *story) answer(format string, arguments ...any) {
	for _, text := range append(s.takeWarnings(), fmt.Sprintf(format, arguments...)) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(s.out, "   | %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

// HandleWarningHeader keeps the API server's warnings for the next answer: they are a part of it.
func (s *story) HandleWarningHeader(_ int, _, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.warnings = append(s.warnings, "Warning: "+text)
}

func (s *story) takeWarnings() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := s.warnings
	s.warnings = nil
	return taken
}

// shown ends a step: what it was to show, and whether it did.
func (s *story) shown(title string, asTold bool) {
	outcome := "as told"
	if !asTold {
		outcome = "NOT AS TOLD"
	}
	s.steps = append(s.steps, step{title: title, as: outcome})
	fmt.Fprintf(s.out, "   => %d. %s: %s\n", len(s.steps), title, outcome)
}

// end prints the table. Its error says how many steps did not come out as told.
func (s *story) end(took time.Duration) error {
	fmt.Fprintf(s.out, "\n=== What was shown ===\n\n")
	columns := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	failed := 0
	for i, step := range s.steps {
		fmt.Fprintf(columns, "%d\t%s\t%s\n", i+1, step.title, step.as)
		if step.as != "as told" {
			failed++
		}
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	fmt.Fprintf(s.out, "\n%d of %d steps as told, in %s.\n", len(s.steps)-failed, len(s.steps), took.Round(time.Second))
	if failed > 0 {
		return fmt.Errorf("%d steps did not come out as told", failed)
	}
	return nil
}

// inWords is an answer of the API server: its code, reason and message.
func inWords(err error) string {
	if err == nil {
		return "accepted"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	return fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message)
}

// deniedBy tells whether the API server's answer is a denial of vmwarden's with this code.
func deniedBy(err error, code string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if string(cause.Type) == code {
			return true
		}
	}
	return false
}

// whatNext leads on from the end of the story.
const whatNext = `
What next:
  make playground       the same, left up until Ctrl-C, to try webhook, reapjob and kubectl on
  docs/install.md       into a cluster of your own; in mode Audit it only tells what it would do
  docs/denials.md       what each code above means
`
