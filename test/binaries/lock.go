package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// lockInterval is the pause between two tries: waiting inside flock(2) could not be ended by a context.
const lockInterval = 100 * time.Millisecond

// fileLock keeps two processes from building the same thing. The kernel drops it with the process that holds it, so a killed build
// blocks nobody. The file itself stays: removing it would let a third process lock a new one beside a waiter for the old.
type fileLock struct{ file *os.File }

// acquireLock waits for the lock on the file at path. If it has to wait, it tells waiting once who holds the lock.
func acquireLock(ctx context.Context, path string, waiting func(holder string)) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	lock := &fileLock{file: file}
	pause := time.NewTicker(lockInterval)
	defer pause.Stop()
	for told := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return lock, lock.sign()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		if holder := lock.holder(); !told && holder != "" {
			waiting(holder)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx)), file.Close())
		case <-pause.C:
		}
	}
}

// sign writes who holds the lock, for those who wait.
func (l *fileLock) sign() error {
	signature := fmt.Sprintf("process %d (since %s)\n", os.Getpid(), time.Now().Format(time.TimeOnly))
	if err := l.file.Truncate(0); err != nil {
		return errors.Join(fmt.Errorf("emptying the lock file: %w", err), l.file.Close())
	}
	if _, err := l.file.WriteAt([]byte(signature), 0); err != nil {
		return errors.Join(fmt.Errorf("signing the lock file: %w", err), l.file.Close())
	}
	return nil
}

// holder is empty while the holder has not signed yet.
func (l *fileLock) holder() string {
	signature, err := io.ReadAll(io.NewSectionReader(l.file, 0, 1<<10))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(signature))
}

func (l *fileLock) release() error {
	// The signature of somebody who is done would mislead the next waiter.
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
