package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// build builds vmwarden's own binaries from this module.
func (l *Lab) build(ctx context.Context) (webhook, reapjob string, err error) {
	return buildInto(ctx, filepath.Join(l.group.Directory(), "bin"))
}

func buildInto(ctx context.Context, directory string, flags ...string) (webhook, reapjob string, err error) {
	arguments := slices.Concat([]string{"build", "-o", directory + string(filepath.Separator)}, buildFlags(), flags,
		[]string{"github.com/ttlab/vmwarden/cmd/webhook", "github.com/ttlab/vmwarden/cmd/reapjob"})
	command := exec.CommandContext(ctx, "go", arguments...)
	if output, err := command.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("building vmwarden's binaries: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return filepath.Join(directory, "webhook"), filepath.Join(directory, "reapjob"), nil
}

// BuildWithClock builds vmwarden's binaries for a machine whose clock is wrong: source takes the place of the one file by which they
// read their machine's clock. The system's clock cannot be another for one process.
func (l *Lab) BuildWithClock(ctx context.Context, name, source string) (webhook, reapjob string, err error) {
	directory := filepath.Join(l.group.Directory(), "bin-"+name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", "", fmt.Errorf("making a directory for binaries with another clock: %w", err)
	}
	found, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/ttlab/vmwarden/internal/apiclock").Output()
	if err != nil {
		return "", "", fmt.Errorf("finding the package of the clock: %w", err)
	}
	replacement := filepath.Join(directory, "local.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(strings.TrimSpace(string(found)), "local.go"): replacement}})
	if err != nil {
		return "", "", fmt.Errorf("writing the overlay of the clock: %w", err)
	}
	if err := errors.Join(
		os.WriteFile(replacement, []byte(source), 0o600), os.WriteFile(filepath.Join(directory, "overlay.json"), overlay, 0o600),
	); err != nil {
		return "", "", fmt.Errorf("writing the overlay of the clock: %w", err)
	}
	return buildInto(ctx, directory, "-overlay", filepath.Join(directory, "overlay.json"))
}
