// Package process runs the servers of a test so that nothing outlives the test: no process and no file, whether it ends well,
// fails, panics, is interrupted, runs into `go test -timeout` or is killed with SIGKILL.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Group is a set of processes and the directory in which everything that they write lives. A watchdog ends the processes and
// removes the directory if the program that made the group ends without Close.
type Group struct {
	directory string
	watchdog  *watchdog

	mutex     sync.Mutex
	processes []*Process
	closed    bool
}

// NewGroup makes a group with a fresh directory below parent, or below the system's directory for temporary files if parent is
// empty. The directory is named after name and belongs to the current user alone.
func NewGroup(parent, name string) (*Group, error) {
	directory, err := os.MkdirTemp(parent, name+"-")
	if err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return nil, fmt.Errorf("finding the directory of %s: %w", name, err)
	}
	watchdog, err := startWatchdog(directory)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	return &Group{directory: directory, watchdog: watchdog}, nil
}

// Directory is the absolute path of the directory that goes with the group.
func (g *Group) Directory() string { return g.directory }

// Start starts a process. The context bounds only the start: the process lives until it ends, is stopped, or the group is closed.
func (g *Group) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, context.Cause(ctx))
	}
	if spec.LogFile == "" {
		spec.LogFile = filepath.Join(g.directory, spec.Name+".log")
	}
	if spec.DeathSignal == 0 {
		spec.DeathSignal = syscall.SIGKILL
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return nil, fmt.Errorf("starting %s: its group is closed", spec.Name)
	}
	process, err := start(spec)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	g.processes = append(g.processes, process)
	if err := g.watchdog.watch(process.PID(), spec.DeathSignal); err != nil {
		return nil, errors.Join(err, process.Stop(0))
	}
	go func() {
		<-process.Exited()
		g.forget(process)
	}()
	return process, nil
}

func (g *Group) forget(process *Process) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return
	}
	g.processes = slices.DeleteFunc(g.processes, func(other *Process) bool { return other == process })
	// A watchdog that does not listen any more has nothing to confuse.
	_ = g.watchdog.forget(process.PID())
}

// Close ends what still runs, each process with its death signal, and removes the directory. Closing twice does nothing.
func (g *Group) Close() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	var failures []error
	for _, process := range slices.Backward(g.processes) {
		failures = append(failures, process.die())
	}
	for _, process := range g.processes {
		if err := process.awaitDeath(closeGrace); err != nil {
			failures = append(failures, err)
			continue // the watchdog may have more luck
		}
		failures = append(failures, g.watchdog.forget(process.PID()))
	}
	if err := os.RemoveAll(g.directory); err != nil {
		failures = append(failures, fmt.Errorf("removing %s: %w", g.directory, err))
	}
	return errors.Join(append(failures, g.watchdog.close())...)
}
