package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
)

// TestAfterAKillAtAnyStepTheNextPassPutsAllRight kills a pass at its first step, then another at its second, and so on until one
// comes to its end. Each has one item of every direction before it.
func TestAfterAKillAtAnyStepTheNextPassPutsAllRight(t *testing.T) {
	clean(t)
	account, err := shared.ReaperConfig(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, account); err != nil {
		t.Fatal(err)
	}
	ended, ghost, orphan, late, live := sessionID('o', 1), sessionID('o', 2), sessionID('o', 3), sessionID('o', 4), sessionID('o', 5)
	open(t, "prod", live)
	insert(t, "prod", running(live))
	for step := 1; ; step++ {
		open(t, "prod", ended)
		open(t, "prod", orphan)
		past := object(t, backend.VMContainerDisk, backend.Lesson{Session: late, Environment: "prod"})
		setNested(t, past, "2026-01-01T00:00:00Z", "metadata", "annotations", "vmwarden.io/deadline")
		if _, err := shared.Backends["prod"].CreateObject(t.Context(), past, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		insert(t, "prod", expired(ended), running(ghost))

		steps, killed := runDoomedPass(t, kubeconfig, step)
		next := pass(t, "prod")
		next.Settings = killSettings(next.Settings)
		if status := next.Run(t.Context()).ExitStatus(); status != reap.ExitClean {
			t.Errorf("after a kill at step %d: the next pass ends with status %d", step, status)
		}
		expectStatus(t, "prod", ended, "expired")
		expectStatus(t, "prod", ghost, "failed")
		expectStatus(t, "prod", live, "running")
		expectLeft(t, live)
		if t.Failed() {
			t.Fatalf("this is what a kill at step %d came to", step)
		}
		if !killed {
			// Reading, deadline (3), expired (7), ghost (2), and what the orphan's machine and Secret take (7).
			if steps < 20 {
				t.Errorf("a whole pass has %d steps, fewer than it must have", steps)
			}
			return
		}
		execute(t, "prod", `delete from sessions where id in ($1, $2)`, ended, ghost)
	}
}

// runDoomedPass runs a pass in a process of its own, which kills itself at a step unless it ends before.
func runDoomedPass(t *testing.T, kubeconfig string, step int) (steps int, killed bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), doomedVariable+"="+strconv.Itoa(step), doomedKubeconfigVariable+"="+kubeconfig,
		doomedDatabaseVariable+"="+shared.ReaperURL("prod"))
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 {
		return 0, true
	}
	if err != nil {
		t.Fatalf("the doomed pass: %v\n%s", err, stderr.String())
	}
	if steps, err = strconv.Atoi(strings.TrimSpace(string(output))); err != nil {
		t.Fatal(err)
	}
	return steps, false
}
