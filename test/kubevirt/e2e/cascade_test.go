package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt"
	"github.com/ttlab/vmwarden/test/lab"
)

// departures notes when objects of the VM namespace go, by the kinds of the seed's table.
type departures struct {
	mutex sync.Mutex
	// revisions are those of etcd at which the first object of a kind went: one order for all resources.
	revisions map[string]uint64
}

// What the table lists, from the top to the bottom of the cascade.
var cascade = map[string]schema.GroupVersionResource{
	"VM":         {Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
	"VMI":        {Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
	"Pod":        {Version: "v1", Resource: "pods"},
	"DataVolume": kubevirt.DataVolumes,
	"PVC":        {Version: "v1", Resource: "persistentvolumeclaims"},
	"Secret":     {Version: "v1", Resource: "secrets"},
}

// watchDepartures sees what happens from now on.
func watchDepartures(t *testing.T) *departures {
	t.Helper()
	d := &departures{revisions: map[string]uint64{}}
	for kind, resource := range cascade {
		watching, err := shared.Objects.Resource(resource).Namespace(lab.VMNamespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for event := range watching.ResultChan() {
				if event.Type == watch.Deleted {
					d.note(kind, event.Object)
				}
			}
		}()
	}
	return d
}

func (d *departures) note(kind string, object runtime.Object) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	// The last state of an object that went carries the revision at which it went.
	revision, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if _, seen := d.revisions[kind]; err == nil && !seen {
		d.revisions[kind] = revision
	}
}

func (d *departures) await(t *testing.T, kinds ...string) {
	t.Helper()
	shared.Await(t, fmt.Sprintf("the end of each of %v is seen", kinds), func(context.Context) error {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		for _, kind := range kinds {
			if d.revisions[kind] == 0 {
				return fmt.Errorf("so far: %v", d.revisions)
			}
		}
		return nil
	})
}

// expectOrder checks that each kind went before the next.
func (d *departures) expectOrder(t *testing.T, kinds ...string) {
	t.Helper()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for i := 1; i < len(kinds); i++ {
		if d.revisions[kinds[i-1]] >= d.revisions[kinds[i]] {
			t.Errorf("%s did not go before %s: %v", kinds[i-1], kinds[i], d.revisions)
		}
	}
}

func claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	return shared.Clients.CoreV1().PersistentVolumeClaims(lab.VMNamespace).Get(ctx, name, metav1.GetOptions{})
}

const golden = "golden-ubuntu-2404"

// The write layer above a golden disk is a file of the launcher Pod, and goes with it.
func TestAMachineOnAGoldenDiskGoesFromTheBottomUpAndTheDiskStays(t *testing.T) {
	shared.Clean(t)
	lesson := session(10)
	seen := watchDepartures(t)
	open(t, lesson, backend.VMGolden)
	launcher := shared.AwaitRunning(t, lesson.VMName())
	claims := 0
	for _, volume := range launcher.Spec.Volumes {
		if source := volume.PersistentVolumeClaim; source != nil {
			claims++
			if source.ClaimName != golden || !source.ReadOnly {
				t.Errorf("the launcher Pod mounts %+v, want the golden disk, read-only", source)
			}
		}
	}
	if claims != 1 {
		t.Errorf("the launcher Pod mounts %d claims, want the golden one alone", claims)
	}
	end(t, lesson)
	shared.AwaitVMGone(t, lesson.VMName())
	seen.await(t, "VM", "VMI", "Pod", "Secret")
	seen.expectOrder(t, "Pod", "VMI", "VM", "Secret")
	disk, err := claim(t.Context(), golden)
	if err != nil || disk.DeletionTimestamp != nil || len(disk.OwnerReferences) > 0 || disk.Status.Phase != corev1.ClaimBound {
		t.Errorf("the golden disk: %v (%v)", disk, err)
	}
}

func TestAMachineWithADiskOfItsOwnTakesItAlong(t *testing.T) {
	shared.Clean(t)
	lesson := session(11)
	seen := watchDepartures(t)
	open(t, lesson, backend.VMDataVolume)
	shared.AwaitRunning(t, lesson.VMName())
	name := lesson.VMName() + "-root"
	volume, err := shared.Objects.Resource(kubevirt.DataVolumes).Namespace(lab.VMNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owners := volume.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "VirtualMachine" || owners[0].Name != lesson.VMName() {
		t.Errorf("the DataVolume's owners are %v, want the machine", owners)
	}
	end(t, lesson)
	shared.AwaitVMGone(t, lesson.VMName())
	seen.await(t, "VM", "VMI", "Pod", "DataVolume", "PVC")
	seen.expectOrder(t, "Pod", "VMI", "VM", "DataVolume", "PVC")
	if _, err := claim(t.Context(), golden); err != nil {
		t.Errorf("the golden disk that it was cloned from: %v", err)
	}
}

func TestADiskThatAMachineUsesOutlivesItsOwnDeletion(t *testing.T) {
	shared.Clean(t)
	lesson := session(12)
	open(t, lesson, backend.VMDataVolume)
	shared.AwaitRunning(t, lesson.VMName())
	name := lesson.VMName() + "-root"
	claims := shared.Clients.CoreV1().PersistentVolumeClaims(lab.VMNamespace)
	if err := claims.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Await(t, "the claim is only marked", func(ctx context.Context) error {
		found, err := claim(ctx, name)
		if err == nil && found.DeletionTimestamp == nil {
			err = errors.New("it is not marked")
		}
		return err
	})
	// The pass is no way around: it asks for the machine, and the claim waits for the Pod.
	shared.Insert(t, lesson, -time.Second)
	seen := watchDepartures(t)
	shared.Pass(t, "prod", 0)
	shared.AwaitVMGone(t, lesson.VMName())
	seen.await(t, "Pod", "PVC")
	seen.expectOrder(t, "Pod", "PVC")
}
