package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ttlab/vmwarden/test/process"
)

const (
	// progressInterval is how often a build says that it goes on: a CI system ends a job that is silent for too long.
	progressInterval = 15 * time.Second
	// reportedLines is how much of its output a failed build shows.
	reportedLines = 40
)

// build makes the artifact and puts it at path, unless another process has done so by the time that the lock is ours.
func (l *locator) build(ctx context.Context, wanted artifact, path string) (err error) {
	if err := os.MkdirAll(l.cache, 0o755); err != nil {
		return fmt.Errorf("making the directory for built binaries: %w", err)
	}
	lock, err := acquireLock(ctx, filepath.Dir(path)+".lock", func(holder string) {
		fmt.Fprintf(l.progress, "waiting for %s, which is building %s\n", holder, wanted.name)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if exists(path) {
		return nil
	}

	// In the cache's own file system, so that the rename at the end is atomic; gone with the group, however this program ends.
	group, err := process.NewGroup(l.cache, "building-"+wanted.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	started := time.Now()
	fmt.Fprintf(l.progress, "building %s from its Go module: takes about %s the first time on 2 cores, and as long as its modules need to download\n",
		wanted.name, wanted.usually)
	result, err := l.make(ctx, group, wanted)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the place of %s: %w", wanted.name, err)
	}
	if err := os.Rename(result, path); err != nil {
		return fmt.Errorf("putting %s in its place: %w", wanted.name, err)
	}
	fmt.Fprintf(l.progress, "built %s in %s\n", wanted.name, time.Since(started).Round(time.Second))
	return nil
}

// make builds the artifact inside the group's directory and returns its path there.
func (l *locator) make(ctx context.Context, group *process.Group, wanted artifact) (string, error) {
	program := filepath.Join(group.Directory(), "program")
	err := l.run(ctx, group, process.Spec{
		Name: "building " + wanted.name,
		Path: "go",
		// Read-only: a build that could change go.mod would not be the build that the lock files describe.
		Args:             []string{"build", "-mod=readonly", "-ldflags", wanted.linkerFlags, "-o", program, wanted.main},
		Env:              goEnvironment(),
		WorkingDirectory: filepath.Join(l.modules, wanted.module),
	})
	if err != nil || !wanted.generated {
		return program, err
	}
	output := filepath.Join(group.Directory(), "output")
	return output, l.run(ctx, group, process.Spec{Name: "generating " + wanted.name, Path: program, Args: []string{output}})
}

// run waits for a process, and says every now and then that it still does.
func (l *locator) run(ctx context.Context, group *process.Group, spec process.Spec) error {
	running, err := group.Start(ctx, spec)
	if err != nil {
		return err
	}
	started := time.Now()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-running.Exited():
			if err := running.Wait(); err != nil {
				return fmt.Errorf("%s: %w\nthe end of its output:\n%s", spec.Name, err, running.LogTail(reportedLines))
			}
			return nil
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: %w", spec.Name, context.Cause(ctx)), running.Stop(0))
		case <-tick.C:
			fmt.Fprintf(l.progress, "%s: still running after %s\n", spec.Name, time.Since(started).Round(time.Second))
		}
	}
}

// goEnvironment is the caller's without what would turn the build into another: flags such as -mod=vendor, a workspace around the
// checkout, another platform than the one that the program is to run on.
func goEnvironment() []string {
	return append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}
