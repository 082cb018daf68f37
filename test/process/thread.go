package process

import (
	"runtime"
	"sync"
)

// The kernel sends Pdeathsig when the *thread* that forked ends, and the Go runtime may end an idle thread at any time
// (golang/go#27505): every process is therefore started from one thread that lives as long as the program.
var lastingThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlocked
		for do := range work {
			do()
		}
	}()
	return work
})

func onLastingThread(do func() error) error {
	done := make(chan error)
	lastingThread() <- func() { done <- do() }
	return <-done
}
