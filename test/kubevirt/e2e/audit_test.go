package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/test/backend"
)

// entry is the part of kube-apiserver's audit log that tells who asked what, and whether we were asked about it.
type entry struct {
	Verb        string            `json:"verb"`
	Annotations map[string]string `json:"annotations"`
	User        struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
}

// byKubeVirt gives what KubeVirt's accounts asked from this place in the audit log on.
func byKubeVirt(t *testing.T, from int64) []entry {
	t.Helper()
	log, err := os.Open(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	// The last line may still be being written.
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	var entries []entry
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if strings.HasPrefix(e.User.Username, "system:serviceaccount:kubevirt:") {
			entries = append(entries, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return entries
}

// What is not reviewed can be neither denied nor slowed, and goes on while we are down.
func TestOfWhatKubeVirtDoesToAMachineOnlyCreationsAreReviewed(t *testing.T) {
	shared.Clean(t)
	log, err := os.Stat(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	lesson := session(70)
	name := lesson.VMName()
	open(t, lesson, backend.VMContainerDisk)
	shared.AwaitRunning(t, name)
	if err := machines().Stop(t.Context(), name, &kubevirtv1.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.AwaitGone(t, "the instance", func(ctx context.Context) error {
		_, err := shared.Instance(ctx, name)
		return err
	})
	if err := machines().Start(t.Context(), name, &kubevirtv1.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "there is an instance", func(ctx context.Context) error {
		_, err := shared.Instance(ctx, name)
		return err
	})
	shared.AwaitRunning(t, name)
	end(t, lesson)
	shared.AwaitVMGone(t, name)

	asked := byKubeVirt(t, log.Size())
	reviewed := map[string]int{}
	for _, e := range asked {
		for key, value := range e.Annotations {
			if !strings.HasSuffix(key, ".vmwarden.io/decision") {
				continue
			}
			reviewed[e.Verb+" "+e.ObjectRef.Resource]++
			if e.Verb != "create" || value != "allow" {
				t.Errorf("%s of %s %s by %s is reviewed: %s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, e.User.Username, value)
			}
		}
	}
	t.Logf("%d writes by KubeVirt, of which are reviewed: %v", len(asked), reviewed)
	if reviewed["create virtualmachineinstances"] != 2 {
		t.Errorf("%d creations of instances were reviewed, want both", reviewed["create virtualmachineinstances"])
	}
}
