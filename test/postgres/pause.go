package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Pause stops the server and all its backends, as if its machine hung: connections stay open, and nothing answers.
func (s *Server) Pause() error {
	// The parent first: afterwards no backend is added.
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return s.signalBackends(syscall.SIGSTOP)
}

// Resume lets a paused server run on.
func (s *Server) Resume() error {
	return errors.Join(s.signalBackends(syscall.SIGCONT), s.process.Signal(syscall.SIGCONT))
}

// signalBackends reaches the server's children, each of which leads a session of its own, so that no process group has them all.
func (s *Server) signalBackends(signal syscall.Signal) error {
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return fmt.Errorf("looking for the server's backends: %w", err)
	}
	for _, path := range statuses {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		pid, parent, err := parseStatus(string(status))
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if parent != s.process.PID() {
			continue
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %s to backend %d: %w", signal, pid, err)
		}
	}
	return nil
}

// parseStatus reads "PID (NAME) STATE PARENT …"; a name may hold spaces and parentheses.
func parseStatus(status string) (pid, parent int, err error) {
	number, _, _ := strings.Cut(status, " ")
	_, rest, found := strings.Cut(status[strings.LastIndexByte(status, ')')+1:], " ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 {
		return 0, 0, fmt.Errorf("unexpected text %q", status)
	}
	if pid, err = strconv.Atoi(number); err != nil {
		return 0, 0, err
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, err
}
