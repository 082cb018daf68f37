package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rootModule is the module in whose directory the build modules lie. They cannot be embedded: go:embed leaves nested modules out.
const rootModule = "github.com/ttlab/vmwarden"

type locator struct {
	modules  string
	cache    string
	assets   string
	progress io.Writer
}

func newLocator(ctx context.Context, progress io.Writer) (*locator, error) {
	if progress == nil {
		progress = io.Discard
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the directory for built binaries: %w", err)
	}
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", rootModule)
	if err != nil {
		return nil, fmt.Errorf("finding the source of %s, which must run inside a checkout of it: %w", rootModule, err)
	}
	return &locator{
		modules:  filepath.Join(root, "test", "binaries", "modules"),
		cache:    filepath.Join(cache, "vmwarden"),
		assets:   os.Getenv("KUBEBUILDER_ASSETS"),
		progress: progress,
	}, nil
}

func (l *locator) locate(ctx context.Context, wanted artifact) (string, error) {
	if l.assets != "" && l.fits(ctx, wanted, filepath.Join(l.assets, wanted.name), "$KUBEBUILDER_ASSETS") {
		return filepath.Join(l.assets, wanted.name), nil
	}
	built, err := l.builtPath(ctx, wanted)
	if err != nil {
		return "", err
	}
	if exists(built) {
		return built, nil
	}
	if found, err := exec.LookPath(wanted.name); err == nil && l.fits(ctx, wanted, found, "$PATH") {
		return found, nil
	}
	return built, l.build(ctx, wanted, built)
}

// fits tells whether a program that somebody else installed can stand in for ours, and says why not if it is there at all.
func (l *locator) fits(ctx context.Context, wanted artifact, path, where string) bool {
	if wanted.generated || wanted.minor == "" || !exists(path) {
		return false
	}
	version, err := minorVersion(ctx, path)
	if err != nil {
		fmt.Fprintf(l.progress, "%s (from %s) is not used: %v\n", path, where, err)
		return false
	}
	if version != wanted.minor {
		fmt.Fprintf(l.progress, "%s (from %s) is not used: it has version %s, and %s is needed\n", path, where, version, wanted.minor)
		return false
	}
	return true
}

func exists(path string) bool {
	information, err := os.Stat(path)
	return err == nil && information.Mode().IsRegular()
}

// goOutput runs the go command in a directory and returns its output without the final newline.
func goOutput(ctx context.Context, directory string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = directory
	command.Env = goEnvironment()
	output, err := command.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(exit.Stderr)))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the go command is needed: %w", err)
	case err != nil:
		return "", fmt.Errorf("go %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}
