package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// closeGrace is how long a process may take to obey its death signal before it is killed.
	closeGrace = 10 * time.Second
	// readyInterval is the pause between two looks at whether a process is ready.
	readyInterval = 25 * time.Millisecond
	// probeTimeout bounds one look: a stopped server accepts connections and never answers.
	probeTimeout = 5 * time.Second
	// reportedLines is how much of its log an error about a process shows.
	reportedLines = 25
)

// Spec says what to run.
type Spec struct {
	// Name is what errors and the log file call the process.
	Name string
	Path string
	Args []string
	// Env is the whole environment; nil means that of the calling program.
	Env []string
	// WorkingDirectory, if set, is where the process starts.
	WorkingDirectory string
	// LogFile receives standard output and standard error, appended. Empty: <name>.log in the group's directory.
	LogFile string
	// Credential, if set, is the user to run as.
	Credential *syscall.Credential
	// DeathSignal ends the process at once when its group is closed or its owner is gone; SIGKILL unless set. Set another for
	// a server that leaves something outside its directory behind when killed.
	DeathSignal syscall.Signal
}

// Process is a running, or ended, process. It leads a process group of its own, which gets every signal that it is sent, and whose
// other members are killed when it ends.
type Process struct {
	name        string
	deathSignal syscall.Signal
	command     *exec.Cmd
	log         logFile
	exited      chan struct{}
	exitError   error
}

func start(spec Spec) (*Process, error) {
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.file.Close() }() // The process has a copy of its own, and nothing is written to this one.
	command := exec.Command(spec.Path, spec.Args...)
	command.Env = spec.Env
	command.Dir = spec.WorkingDirectory
	command.Stdout, command.Stderr = log.file, log.file
	// In its own session no terminal's Ctrl-C reaches it before its owner has seen to it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: spec.Credential}
	setDeathSignal(command.SysProcAttr, spec.DeathSignal)
	if err := onLastingThread(command.Start); err != nil {
		return nil, err
	}
	process := &Process{name: spec.Name, deathSignal: spec.DeathSignal, command: command, log: log, exited: make(chan struct{})}
	go func() {
		process.exitError = command.Wait()
		// What the process leaves behind goes with it. The group's number stays taken as long as one of them is there.
		_ = syscall.Kill(-process.PID(), syscall.SIGKILL)
		close(process.exited)
	}()
	return process, nil
}

// PID is the number of the process and of the process group that it leads.
func (p *Process) PID() int { return p.command.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the end of the process and returns what os/exec says of it: nil for exit status 0, else an *exec.ExitError.
func (p *Process) Wait() error {
	<-p.exited
	return p.exitError
}

// Signal sends a signal to the process and the group it leads. The error is os.ErrProcessDone if it has ended.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.exited:
		return fmt.Errorf("sending %s to %s: %w", signal, p.name, os.ErrProcessDone)
	default:
	}
	err := syscall.Kill(-p.PID(), signal)
	if errors.Is(err, syscall.ESRCH) {
		// It ended this very moment, before Wait told.
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// Stop asks the process to end with SIGTERM and kills it after the grace period, or at once if that is 0. It returns when the
// process has ended; one that had ended before is no error.
func (p *Process) Stop(grace time.Duration) error {
	if grace > 0 {
		if err := p.signalIfAlive(syscall.SIGTERM, syscall.SIGCONT); err != nil {
			return err
		}
	}
	return p.awaitDeath(grace)
}

// die sends the death signal; awaitDeath waits for its effect.
func (p *Process) die() error { return p.signalIfAlive(p.deathSignal, syscall.SIGCONT) }

func (p *Process) awaitDeath(grace time.Duration) error {
	expired := time.NewTimer(grace)
	defer expired.Stop()
	select {
	case <-p.exited:
		return nil
	case <-expired.C:
	}
	if err := p.signalIfAlive(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signalIfAlive sends signals of which the last may well find the process gone, ended by the first.
func (p *Process) signalIfAlive(signals ...syscall.Signal) error {
	for _, signal := range signals {
		err := p.Signal(signal)
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AwaitReady calls probe until it succeeds. It fails, with the end of the log, when the process ends or the context does.
func (p *Process) AwaitReady(ctx context.Context, probe func(context.Context) error) error {
	pause := time.NewTicker(readyInterval)
	defer pause.Stop()
	for {
		probeContext, cancel := context.WithTimeout(ctx, probeTimeout)
		err := probe(probeContext)
		cancel()
		select {
		case <-p.exited:
			return p.failure("ended before it was ready", exitReason(p.exitError))
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-p.exited: // said at the top, after one more probe
		case <-ctx.Done():
			return p.failure("was not ready in time", errors.Join(context.Cause(ctx), err))
		case <-pause.C:
		}
	}
}

func (p *Process) failure(what string, reason error) error {
	return fmt.Errorf("%s %s: %w\nthe end of its log:\n%s", p.name, what, reason, p.LogTail(reportedLines))
}

func exitReason(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
