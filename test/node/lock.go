package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockInterval is the pause between two tries: waiting inside flock(2) could not be ended by a context.
const lockInterval = 100 * time.Millisecond

// acquireLock waits until no other node runs on this machine: they would have the same addresses and cgroups. The kernel drops
// the lock with the process that holds it.
func acquireLock(ctx context.Context) (*os.File, error) {
	path := filepath.Join(os.TempDir(), "vmwarden-node.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	pause := time.NewTicker(lockInterval)
	defer pause.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another node on this machine to end: %w", context.Cause(ctx)), file.Close())
		case <-pause.C:
		}
	}
}
