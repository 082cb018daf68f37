package binaries

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// The first line is "Kubernetes v1.34.10" or "etcd Version: 3.6.16".
var versionPattern = regexp.MustCompile(`(?:Kubernetes v|etcd Version: )(\d+\.\d+)\.\d+`)

func minorVersion(ctx context.Context, path string) (string, error) {
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for its version: %w", err)
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		line, _, _ := strings.Cut(string(output), "\n")
		return "", fmt.Errorf("it names no version, but %q", line)
	}
	return string(match[1]), nil
}
