package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// build builds vmwarden's own binaries from this module.
func (l *Lab) build(ctx context.Context) (webhook, reapjob string, err error) {
	directory := filepath.Join(l.group.Directory(), "bin")
	command := exec.CommandContext(ctx, "go", "build", "-o", directory+string(filepath.Separator),
		"github.com/ttlab/vmwarden/cmd/webhook", "github.com/ttlab/vmwarden/cmd/reapjob")
	if output, err := command.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("building vmwarden's binaries: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return filepath.Join(directory, "webhook"), filepath.Join(directory, "reapjob"), nil
}
