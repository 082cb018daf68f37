package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownerVariable makes this test program another: the owner of a group, which is then killed in one way or another.
const ownerVariable = "VMWARDEN_TEST_OWNER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(ownerVariable); parent != "" {
		if err := own(parent); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// own starts some processes, prints their numbers, and waits for the word to panic.
func own(parent string) error {
	group, err := NewGroup(parent, "owned")
	if err != nil {
		return err
	}
	var pids []string
	for _, spec := range []Spec{
		// A child of its own, which only the process group still knows when its parent has been killed.
		shell("family", stubborn),
		{
			Name: "asked", Path: "/bin/sh",
			Args:        []string{"-c", `trap 'touch "$0"; exit' TERM; echo ready; while :; do sleep 1 & wait $!; done`, filepath.Join(parent, "asked")},
			DeathSignal: syscall.SIGTERM,
		},
		shell("paused", stubborn),
	} {
		process, err := group.Start(context.Background(), spec)
		if err != nil {
			return err
		}
		if err := process.AwaitReady(context.Background(), saysReady(process)); err != nil {
			return err
		}
		if spec.Name == "paused" {
			if err := process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
		}
		pids = append(pids, fmt.Sprint(process.PID()))
	}
	fmt.Println(strings.Join(pids, " "))
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	panic("a test panics")
}

func TestNothingOutlivesTheOwner(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(owner *exec.Cmd, input io.Closer) error
	}{
		{"killed with SIGKILL", func(owner *exec.Cmd, _ io.Closer) error { return owner.Process.Kill() }},
		{"interrupted by Ctrl-C", func(owner *exec.Cmd, _ io.Closer) error {
			// As a terminal does it: to the whole group.
			return syscall.Kill(-owner.Process.Pid, syscall.SIGINT)
		}},
		{"panics", func(_ *exec.Cmd, input io.Closer) error { return input.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerVariable+"="+parent)
			owner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var complaints bytes.Buffer
			owner.Stderr = &complaints
			input, err := owner.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			if err != nil {
				t.Fatalf("the owner did not start its processes: %v: %v: %s", err, owner.Wait(), &complaints)
			}
			if err := test.end(owner, input); err != nil {
				t.Fatal(err)
			}
			if err := owner.Wait(); err == nil {
				t.Error("the owner ended well, which was not the plan")
			}

			eventually(t, "the directory is gone", func() bool {
				left, err := filepath.Glob(filepath.Join(parent, "owned-*"))
				return err == nil && len(left) == 0
			})
			for pid := range strings.FieldsSeq(line) {
				if members := groupMembers(t, pid); len(members) > 0 {
					t.Errorf("processes of group %s are still there: %v", pid, members)
				}
			}
			if _, err := os.Stat(filepath.Join(parent, "asked")); err != nil {
				t.Errorf("the process with a death signal of its own was not asked with it: %v", err)
			}
		})
	}
}

func TestWhatAProcessLeavesBehindGoesWithIt(t *testing.T) {
	group := newGroup(t)
	process := startEnding(t, group, shell("parent", "sleep 1000 & exit 0"))
	eventually(t, "its child is gone", func() bool { return len(groupMembers(t, fmt.Sprint(process.PID()))) == 0 })
}

// groupMembers are the members of a process group that are not just waiting for somebody to take note of their end.
func groupMembers(t *testing.T, group string) []string {
	t.Helper()
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, path := range statuses {
		status, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		// "PID (NAME) STATE PARENT GROUP …"
		fields := strings.Fields(string(status[bytes.LastIndexByte(status, ')')+1:]))
		if fields[2] == group && fields[0] != "Z" {
			members = append(members, strings.TrimSpace(string(status)))
		}
	}
	return members
}
