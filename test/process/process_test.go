package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// obedient says that it is ready, writes a line for the signal TERM, and ends with status 7.
const obedient = `trap 'echo asked to end; exit 7' TERM; echo ready; while :; do sleep 1 & wait $!; done`

// stubborn does not heed TERM.
const stubborn = `trap '' TERM; echo ready; while :; do sleep 1 & wait $!; done`

func newGroup(t *testing.T) *Group {
	t.Helper()
	group, err := NewGroup(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	})
	return group
}

func shell(name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}}
}

func startReady(t *testing.T, group *Group, spec Spec) *Process {
	t.Helper()
	process, err := group.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.AwaitReady(t.Context(), saysReady(process)); err != nil {
		t.Fatal(err)
	}
	return process
}

func startEnding(t *testing.T, group *Group, spec Spec) *Process {
	t.Helper()
	process, err := group.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	return process
}

func saysReady(process *Process) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(process.LogTail(10), "ready") {
			return errors.New("it has not said that it is ready")
		}
		return nil
	}
}

func TestAProcessThatEndsEarlyIsReportedWithTheEndOfItsLog(t *testing.T) {
	group := newGroup(t)
	process, err := group.Start(t.Context(), shell("server", "echo first; for i in $(seq 30); do echo line $i; done; echo no such flag >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	err = process.AwaitReady(t.Context(), func(context.Context) error { return errors.New("connection refused") })
	if err == nil {
		t.Fatal("a process that has ended was called ready")
	}
	for _, part := range []string{"server ended before it was ready", "exit status 3", "line 30\nno such flag"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "first") {
		t.Errorf("the error shows the beginning of the log: %v", err)
	}
}

func TestAProcessThatEndsIsNotReadyEvenIfAStrangerAnswers(t *testing.T) {
	group := newGroup(t)
	process := startEnding(t, group, shell("server", "exit 0"))
	if err := process.AwaitReady(t.Context(), func(context.Context) error { return nil }); err == nil {
		t.Error("a process that has ended was called ready")
	}
}

func TestAProcessThatIsNotReadyInTimeIsReportedWithTheLastReason(t *testing.T) {
	group := newGroup(t)
	process := startReady(t, group, shell("server", obedient))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the minute passed"))
	err := process.AwaitReady(ctx, func(context.Context) error { return errors.New("connection refused") })
	if err == nil || !strings.Contains(err.Error(), "the minute passed") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want both reasons", err)
	}
}

func TestARestartedProcessHasALogOfItsOwnInTheSameFile(t *testing.T) {
	group := newGroup(t)
	first := startEnding(t, group, shell("server", "echo the first: bind: address already in use"))
	if !first.PortTaken() {
		t.Error("the first process said that its port is taken, and that was not heard")
	}
	second := startEnding(t, group, shell("server", "echo the second"))
	if got := second.LogTail(10); got != "the second" {
		t.Errorf("the log of the second process is %q", got)
	}
	if second.PortTaken() {
		t.Error("the second process is blamed for what the first said")
	}
	content, err := os.ReadFile(filepath.Join(group.Directory(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "the first") {
		t.Error("the file has lost what the first process wrote")
	}
}

func TestStopAsksFirstAndKillsAfterTheGracePeriod(t *testing.T) {
	group := newGroup(t)
	for _, test := range []struct {
		name   string
		script string
		grace  time.Duration
		paused bool
		want   string
	}{
		{name: "obedient", script: obedient, grace: time.Minute, want: "exit status 7"},
		{name: "paused", script: obedient, grace: time.Minute, paused: true, want: "exit status 7"},
		{name: "stubborn", script: stubborn, grace: time.Millisecond, want: "signal: killed"},
		{name: "without grace", script: obedient, grace: 0, want: "signal: killed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			process := startReady(t, group, shell(test.name, test.script))
			if test.paused {
				if err := process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if err := process.Stop(test.grace); err != nil {
				t.Fatal(err)
			}
			if err := process.Wait(); err == nil || err.Error() != test.want {
				t.Errorf("the process ended with %v, want %s", err, test.want)
			}
			if err := process.Stop(time.Minute); err != nil {
				t.Errorf("stopping it again: %v", err)
			}
			if err := process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("a signal to a process that has ended gives %v, want %v", err, os.ErrProcessDone)
			}
		})
	}
}

func TestCloseEndsEveryProcessWithItsDeathSignalAndRemovesTheDirectory(t *testing.T) {
	group := newGroup(t)
	killed := startReady(t, group, shell("killed", obedient))
	spec := shell("asked", obedient)
	spec.DeathSignal = syscall.SIGTERM
	asked := startReady(t, group, spec)
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the first process ended with %v, want a kill", err)
	}
	if err := asked.Wait(); err == nil || err.Error() != "exit status 7" {
		t.Errorf("the second process ended with %v, want its own exit status", err)
	}
	if _, err := os.Stat(group.Directory()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := group.Start(t.Context(), shell("late", obedient)); err == nil {
		t.Error("a closed group starts processes")
	}
}

// eventually waits for what other processes bring about without telling us.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("a minute passed, and it is not so that %s", what)
	}
}
