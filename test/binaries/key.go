package binaries

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// builtPath is where our own build of the artifact lies, or would lie. Its name changes with everything that shapes the result, so
// a file that is there is always the right one.
func (l *locator) builtPath(ctx context.Context, wanted artifact) (string, error) {
	module := filepath.Join(l.modules, wanted.module)
	// The go command of the module, which may be another than the one that compiled this program.
	goVersion, err := goOutput(ctx, module, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", []string{wanted.main, wanted.linkerFlags, goVersion, runtime.GOOS, runtime.GOARCH})
	if err := hashModule(hash, module); err != nil {
		return "", fmt.Errorf("reading the build module %s: %w", module, err)
	}
	return filepath.Join(l.cache, fmt.Sprintf("%s-%x", wanted.name, hash.Sum(nil)[:8]), wanted.name), nil
}

// hashModule adds every file of the module: go.mod, go.sum and the source of generators.
func hashModule(hash io.Writer, module string) error {
	return filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		return err
	})
}
