package inventory

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// readsAtOnce bounds the reads of a decision that finds much unknown: right after a start.
const readsAtOnce = 16

// Needs knows the needs of the objects in a namespace. Needs get, list and watch on virtual machines and instances.
type Needs struct {
	Client    dynamic.Interface
	Namespace string
	Requests  *Requests
	Clock     clock.PassiveClock

	known known
}

// Find gives the needs of listed objects. Of a virtual machine the need is known where it was found out for this generation; of
// an instance where it was found out at all: its spec follows that of its virtual machine, which counts by itself, and every
// write of its status is a generation. What admission calculated holds for the first generation of a virtual machine.
func (n *Needs) Find(ctx context.Context, machines, instances []metav1.PartialObjectMetadata, admitted map[types.UID]ledger.Need) (map[types.UID]ledger.Need, error) {
	needs := make(map[types.UID]ledger.Need, len(machines)+len(instances))
	var mutex sync.Mutex
	reads, readContext := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtOnce)
	read := func(resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) {
		reads.Go(func() error {
			need, err := n.read(readContext, resource, object)
			mutex.Lock()
			defer mutex.Unlock()
			needs[object.UID] = need
			return err
		})
	}
	set := func(uid types.UID, need ledger.Need) {
		mutex.Lock()
		defer mutex.Unlock()
		needs[uid] = need
	}
	for i := range machines {
		machine := &machines[i]
		if m, found := n.known.of(machine.UID); found && m.generation == machine.Generation {
			set(machine.UID, m.need)
		} else if need, found := admitted[machine.UID]; found && machine.Generation == 1 {
			n.known.remember(machine.UID, 1, need, n.Clock.Now())
			set(machine.UID, need)
		} else {
			read(ledger.VirtualMachines, machine)
		}
	}
	for i := range instances {
		if m, found := n.known.of(instances[i].UID); found {
			set(instances[i].UID, m.need)
		} else {
			read(ledger.VirtualMachineInstances, &instances[i])
		}
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	n.known.forget(needs, n.Clock.Now())
	return needs, nil
}

// read finds out what one object needs. One that is gone since the list needs nothing any more.
func (n *Needs) read(ctx context.Context, resource schema.GroupVersionResource, listed *metav1.PartialObjectMetadata) (ledger.Need, error) {
	object, err := n.Client.Resource(resource).Namespace(n.Namespace).Get(ctx, listed.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && object.GetUID() != listed.UID) {
		return ledger.Need{}, nil
	}
	if err != nil {
		return ledger.Need{}, fmt.Errorf("reading %s %s: %w", resource.Resource, listed.Name, err)
	}
	return n.measure(ctx, resource, object)
}

// measure calculates what an object needs, and remembers it.
func (n *Needs) measure(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (need ledger.Need, err error) {
	if resource == ledger.VirtualMachineInstances {
		instance := &kubevirtv1.VirtualMachineInstance{}
		if err := decode(object, instance); err != nil {
			return ledger.Need{}, err
		}
		need = n.Requests.OfInstance(instance)
	} else {
		machine := &kubevirtv1.VirtualMachine{}
		if err := decode(object, machine); err != nil {
			return ledger.Need{}, err
		}
		if need, err = n.Requests.OfMachine(ctx, machine); err != nil {
			return ledger.Need{}, fmt.Errorf("virtual machine %s: %w", object.GetName(), err)
		}
	}
	n.known.remember(object.GetUID(), object.GetGeneration(), need, n.Clock.Now())
	return need, nil
}
