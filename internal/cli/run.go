// Package cli is what both binaries' command lines share: exit statuses, errors of use, signals, logs, access to the cluster.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ttlab/vmwarden/internal/terminal"
)

// Exit statuses that both binaries share. What else a command answers stands in its help.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitWrongUse = 2
)

// StatusError makes a command end with a status of its own.
type StatusError struct {
	Status int
	Err    error
}

func (e *StatusError) Error() string { return e.Err.Error() }

func (e *StatusError) Unwrap() error { return e.Err }

// WrongUse is an error of whoever wrote the command line or the configuration: it ends with ExitWrongUse and names all faults.
func WrongUse(faults ...error) error {
	return &StatusError{Status: ExitWrongUse, Err: errors.Join(faults...)}
}

// Run executes the command line and returns the exit status. The context ends at SIGINT and SIGTERM.
func Run(root *cobra.Command, arguments []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root.SetArgs(arguments)
	root.SetErr(stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	// What cobra itself finds wrong with a flag is an error of use as well.
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return WrongUse(fmt.Errorf("%w; see '%s --help'", flagError(command, err), command.CommandPath()))
	})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	for line := range strings.Lines(err.Error()) {
		// Each fault is a line of its own, and says whose it is: in a log others stand between them. It may hold what somebody else wrote,
		// such as a name in a file or what a database answered.
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), terminal.Printable(strings.TrimRight(line, "\n")))
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Status
	}
	return ExitFailed
}

// NoArguments refuses positional arguments as an error of use.
func NoArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return WrongUse(fmt.Errorf("%q is not understood; see '%s --help'", arguments[0], command.CommandPath()))
	}
	return nil
}

// Group is the run function of a command that only holds others: called by itself it says which there are.
func Group(command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return noCommand(command, arguments[0])
	}
	return command.Help()
}

func noCommand(command *cobra.Command, name string) error {
	// As far as cobra goes by itself where it tells.
	command.SuggestionsMinimumDistance = 2
	meant := ""
	if suggestions := command.SuggestionsFor(name); len(suggestions) > 0 {
		meant = "; is it " + strings.Join(suggestions, " or ") + "?"
	}
	return WrongUse(fmt.Errorf("there is no command %q%s; see '%s --help'", name, meant, command.CommandPath()))
}
