// Package namespace deletes the guarded namespaces themselves, in a lab of its own.
package namespace

import (
	"context"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/lab"
)

func TestAGuardedNamespaceGoesWithEveryReplicaDown(t *testing.T) {
	started, err := stack.Start(t.Context(), stack.Options{Progress: os.Stderr, PlayedNodes: []string{"node-a"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	prod := started.Backends["prod"]
	for n, manifest := range []string{backend.VMContainerDisk, backend.VMGolden, backend.VMDataVolume} {
		lesson := backend.Lesson{Session: fmt.Sprintf("%08x-0000-4000-8000-000000000000", 0xe0000000+n), Environment: "prod"}
		if _, err := prod.Open(t.Context(), lesson.Session, manifest); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			lesson.Member = 1
			if _, err := prod.Create(t.Context(), backend.GroupMember, lesson); err != nil {
				t.Fatal(err)
			}
		}
		started.AwaitRunning(t, lesson.VMName())
	}
	if _, err := prod.Create(t.Context(), backend.LabPod, backend.Lesson{Session: "e0000009-0000-4000-8000-000000000000", Environment: "prod"}); err != nil {
		t.Fatal(err)
	}
	if err := started.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	namespaces := started.Clients.CoreV1().Namespaces()
	for _, name := range []string{lab.VMNamespace, lab.PodNamespace} {
		if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	for _, name := range []string{lab.VMNamespace, lab.PodNamespace} {
		started.AwaitGone(t, name, func(ctx context.Context) error {
			_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
			return err
		})
	}
}
