package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
)

// Run is one run of a binary.
type Run struct {
	Stdout string
	Stderr string
	Status int
}

// Reapjob runs the reapjob binary as an environment's reaper, with its real token and its database's least rights.
// configuration is the content of the configuration file.
func (l *Lab) Reapjob(ctx context.Context, environment, configuration string, arguments ...string) (Run, error) {
	return l.ReapjobWith(ctx, environment, l.ReaperURL(environment), configuration, arguments...)
}

// ReapjobWith does what Reapjob does with a database of the caller's choice.
func (l *Lab) ReapjobWith(ctx context.Context, environment, databaseURL, configuration string, arguments ...string) (Run, error) {
	command, err := l.ReapjobCommand(ctx, environment, databaseURL, configuration, arguments...)
	if err != nil {
		return Run{}, err
	}
	return runCommand(command)
}

// ReapjobCommand is the command that ReapjobWith runs, for a caller that has more to do with it than to wait.
func (l *Lab) ReapjobCommand(ctx context.Context, environment, databaseURL, configuration string, arguments ...string) (*exec.Cmd, error) {
	directory, err := os.MkdirTemp(l.group.Directory(), "reapjob")
	if err != nil {
		return nil, fmt.Errorf("making a directory for reapjob: %w", err)
	}
	config := filepath.Join(directory, "config.yaml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("writing reapjob's configuration: %w", err)
	}
	account, err := l.ReaperConfig(ctx, environment)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := l.ControlPlane.WriteKubeconfig(kubeconfig, account); err != nil {
		return nil, err
	}
	arguments = append(arguments, "--config", config, "--environment", environment, "--kubeconfig", kubeconfig)
	return newCommand(ctx, l.reapjob, []string{"DATABASE_URL=" + databaseURL, l.raceEnvironment()}, arguments...), nil
}

// ReaperUsername is the user as which an environment's reaper is known.
func ReaperUsername(environment string) string {
	return "system:serviceaccount:ttlab-" + environment + ":reaper"
}

// ReaperConfig signs in as an environment's reaper.
func (l *Lab) ReaperConfig(ctx context.Context, environment string) (*rest.Config, error) {
	return l.ControlPlane.ServiceAccountConfig(ctx, "ttlab-"+environment, "reaper")
}

// BinaryDir is where vmwarden's binaries are.
func (l *Lab) BinaryDir() string { return filepath.Dir(l.reapjob) }

// Binary runs one of vmwarden's binaries, "webhook" or "reapjob", as it is.
func (l *Lab) Binary(ctx context.Context, name string, arguments ...string) (Run, error) {
	return runCommand(newCommand(ctx, filepath.Join(l.BinaryDir(), name), []string{l.raceEnvironment()}, arguments...))
}

func newCommand(ctx context.Context, path string, environment []string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = slices.Concat(environment, []string{"PATH=" + os.Getenv("PATH")})
	return command
}

func runCommand(command *exec.Cmd) (Run, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	run := Run{Stdout: stdout.String(), Stderr: stderr.String(), Status: command.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return run, fmt.Errorf("running %s: %w", filepath.Base(command.Path), err)
	}
	return run, nil
}
