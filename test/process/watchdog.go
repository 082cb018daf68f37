package process

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

//go:embed watchdog.sh
var watchdogScript string

// watchdog is a shell in a session of its own that waits for its standard input to close. The kernel closes it when the owner
// ends, even by SIGKILL, a panic or `go test -timeout`, where no deferred function and no t.Cleanup runs.
type watchdog struct {
	command *exec.Cmd
	mutex   sync.Mutex
	pipe    io.WriteCloser
}

func startWatchdog(directory string) (*watchdog, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", directory)
	command.Dir = "/"
	// A terminal's Ctrl-C reaches the whole foreground group: not a process in its own session.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Standard output and error stay on /dev/null: `go test` waits for everybody who holds its own.
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making the pipe to the watchdog: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &watchdog{command: command, pipe: pipe}, nil
}

// watch makes the watchdog end the process group with the signal if the owner goes.
func (w *watchdog) watch(pid int, signal syscall.Signal) error {
	return w.tell("+ %d %s\n", pid, strings.TrimPrefix(unix.SignalName(signal), "SIG"))
}

// forget is for a process that has ended: its number may be given to a stranger.
func (w *watchdog) forget(pid int) error { return w.tell("- %d\n", pid) }

func (w *watchdog) tell(format string, arguments ...any) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, err := fmt.Fprintf(w.pipe, format, arguments...); err != nil {
		return fmt.Errorf("telling the watchdog: %w", err)
	}
	return nil
}

// close lets the watchdog do its work and waits for it.
func (w *watchdog) close() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.pipe.Close(); err != nil {
		return fmt.Errorf("closing the pipe to the watchdog: %w", err)
	}
	if err := w.command.Wait(); err != nil {
		return fmt.Errorf("waiting for the watchdog: %w", err)
	}
	return nil
}
