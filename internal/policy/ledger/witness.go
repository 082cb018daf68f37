package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// WatchWitness watches the virtual machines of a namespace, metadata only. Needs list and watch on them.
type WatchWitness struct {
	clock clock.PassiveClock
	// memory is how long a UID is remembered after it was first seen.
	memory   time.Duration
	informer cache.SharedIndexInformer

	mutex sync.Mutex
	seen  map[types.UID]time.Time
}

// NewWatchWitness makes a witness that remembers what it saw for twice the reservation time: no reservation lasts longer,
// also where the clocks of two replicas differ by as much.
func NewWatchWitness(client metadata.Interface, namespace string, reservation time.Duration, passiveClock clock.PassiveClock) (*WatchWitness, error) {
	w := &WatchWitness{clock: passiveClock, memory: 2 * reservation, seen: map[types.UID]time.Time{}}
	w.informer = metadatainformer.NewFilteredMetadataInformer(client, VirtualMachines, namespace, 0, cache.Indexers{}, nil).Informer()
	// Only the identity of an object is of use; the rest would be memory.
	if err := w.informer.SetTransform(identityOnly); err != nil {
		return nil, fmt.Errorf("preparing the watch of virtual machines: %w", err)
	}
	if _, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: w.remember}); err != nil {
		return nil, fmt.Errorf("preparing the watch of virtual machines: %w", err)
	}
	return w, nil
}

func identityOnly(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: full.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		},
	}, nil
}

// Start watches until the context ends. It is a runnable of a controller-runtime manager.
func (w *WatchWitness) Start(ctx context.Context) error {
	w.informer.RunWithContext(ctx)
	return nil
}

// NeedLeaderElection is false: every replica answers reviews, so every replica watches.
func (w *WatchWitness) NeedLeaderElection() bool { return false }

// Seen tells whether an object of this UID has come to be.
func (w *WatchWitness) Seen(uid types.UID) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	_, seen := w.seen[uid]
	return seen
}

func (w *WatchWitness) remember(object any) {
	machine, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	now := w.clock.Now()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for uid, since := range w.seen {
		if now.Sub(since) > w.memory {
			delete(w.seen, uid)
		}
	}
	w.seen[machine.UID] = now
}
