package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAProcessOutlivesTheThreadOfWhoeverStartedIt(t *testing.T) {
	group := newGroup(t)
	var process *Process
	onDyingThread(t, func() { process = startReady(t, group, shell("server", obedient)) })
	if err := process.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err == nil || err.Error() != "exit status 7" {
		t.Errorf("the process ended with %v, want that it lived until it was asked", err)
	}
}

// onDyingThread does something on a thread of its own and returns when that thread is gone.
func onDyingThread(t *testing.T, do func()) {
	t.Helper()
	thread := make(chan int, 1)
	var visit func()
	visit = func() {
		// A goroutine that ends while it is locked takes its thread with it.
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The main thread never ends. As long as we sit on it, the next goroutine gets another.
			go visit()
			<-t.Context().Done()
			return
		}
		do()
		thread <- unix.Gettid()
	}
	go visit()
	path := fmt.Sprintf("/proc/self/task/%d", <-thread)
	eventually(t, "the thread is gone", func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, os.ErrNotExist)
	})
}
