package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// cgroupNames are what the kubelet and containerd's runtime make below the root of every hierarchy.
var cgroupNames = []string{"kubepods", "k8s.io"}

// removeCgroups removes the empty cgroups that a kubelet leaves behind. One that holds a process cannot be removed: then another
// kubelet is at work on this machine.
func removeCgroups() error {
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		hierarchies, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, hierarchy := range hierarchies {
			for _, name := range cgroupNames {
				if err := removeCgroup(filepath.Join(hierarchy, name)); err != nil {
					return fmt.Errorf("removing what a kubelet left (does another run here?): %w", err)
				}
			}
		}
	}
	return nil
}

// removeCgroup removes directories alone, the innermost first: their files are the kernel's and go with them.
func removeCgroup(root string) error {
	var directories []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			directories = append(directories, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, directory := range slices.Backward(directories) {
		if err := os.Remove(directory); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
