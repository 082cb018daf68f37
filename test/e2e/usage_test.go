package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/test/lab"
)

// unreachable is a kubeconfig of a cluster that does not exist: whoever touched it would fail otherwise than by wrong use.
const unreachable = `
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:9"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
users: [{name: none, user: {token: none}}]
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWrongUseEndsWithStatusTwoAndNamesEveryFault(t *testing.T) {
	kubeconfig := write(t, "kubeconfig", unreachable)
	good := write(t, "good.yaml", lab.Config)
	bad := write(t, "bad.yaml", withCaps(t, "vms: -1, reservation: 1ns")+"admin: {}\n")
	for name, c := range map[string]struct {
		binary    string
		arguments []string
		mention   []string
	}{
		"no command":             {"webhook", []string{"guard"}, []string{`no command "guard"`, "--help"}},
		"an unknown flag":        {"webhook", []string{"serve", "--prot"}, []string{"--prot", "webhook serve --help"}},
		"an argument too many":   {"reapjob", []string{"run", "now"}, []string{`"now"`, "reapjob run --help"}},
		"a bad configuration":    {"webhook", []string{"serve", "--config", bad, "--kubeconfig", kubeconfig, "--cert-dir", t.TempDir(), "--address", "x"}, []string{"caps.vms", "caps.reservation", `"admin"`, "tls.crt", "tls.key", "--address"}},
		"nothing at all":         {"reapjob", []string{"run", "--kubeconfig", kubeconfig}, []string{"--config", "--environment"}},
		"an unknown environment": {"reapjob", []string{"plan", "--config", good, "--environment", "test", "--kubeconfig", kubeconfig, "-o", "yaml"}, []string{"--environment", "prod, dev", "--output"}},
		"no database":            {"reapjob", []string{"run", "--config", good, "--environment", "prod", "--kubeconfig", kubeconfig, "--release-brake", "all"}, []string{"DATABASE_URL", "--release-brake"}},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := shared.Binary(t.Context(), c.binary, c.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			if run.Status != cli.ExitWrongUse {
				t.Errorf("exit status %d, want %d", run.Status, cli.ExitWrongUse)
			}
			for _, mention := range c.mention {
				if !strings.Contains(run.Stderr, mention) {
					t.Errorf("stderr does not mention %s:\n%s", mention, run.Stderr)
				}
			}
			if run.Stdout != "" {
				t.Errorf("stdout = %q, want nothing", run.Stdout)
			}
		})
	}
}

func TestHelpIsOnStdoutWithExamples(t *testing.T) {
	for _, command := range [][]string{{"webhook", "serve"}, {"webhook", "caps"}, {"webhook", "denials"}, {"webhook", "trace"}, {"reapjob", "run"}, {"reapjob", "plan"}, {"reapjob", "status"}} {
		run, err := shared.Binary(t.Context(), command[0], command[1], "--help")
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != cli.ExitOK || !strings.Contains(run.Stdout, "Examples:") || !strings.Contains(run.Stdout, "Exit status") {
			t.Errorf("%v --help: status %d\n%s", command, run.Status, run.Stdout)
		}
	}
}
