package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func TestAMachineRunsAndLeavesNothing(t *testing.T) {
	shared.Clean(t)
	lesson := session(1)
	open(t, lesson, backend.VMContainerDisk)
	launcher := shared.AwaitRunning(t, lesson.VMName())
	if launcher.Spec.ActiveDeadlineSeconds == nil {
		t.Error("the launcher Pod has no limit")
	}
	for _, key := range []string{"ttlab.io/session", "ttlab.io/env", "ttlab.io/lab"} {
		if launcher.Labels[key] == "" {
			t.Errorf("the launcher Pod has no label %s", key)
		}
	}
	if launcher.Annotations[vmwarden.DeadlineAnnotation] == "" {
		t.Error("the launcher Pod has no deadline")
	}
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.AwaitVMGone(t, lesson.VMName())
	shared.AwaitGone(t, "its Secret", func(ctx context.Context) error {
		_, err := shared.Clients.CoreV1().Secrets(lab.VMNamespace).Get(ctx, lesson.VMName()+"-cloudinit", metav1.GetOptions{})
		return err
	})
}
