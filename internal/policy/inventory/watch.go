package inventory

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// Start finds out, by a watch, what objects need before a decision asks. It runs until the context ends; without it decisions
// are the same and take longer. It is a runnable of a controller-runtime manager.
func (n *Needs) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, resource := range []schema.GroupVersionResource{ledger.VirtualMachines, ledger.VirtualMachineInstances} {
		informer := dynamicinformer.NewFilteredDynamicInformer(n.Client, resource, n.Namespace, 0, cache.Indexers{}, nil).Informer()
		measure := func(object any) (any, error) {
			full, ok := object.(*unstructured.Unstructured)
			if !ok {
				return object, nil
			}
			// An object whose need cannot be found out now is read again by the decision that needs it, which then tells why.
			_, _ = n.measure(ctx, resource, full)
			return identityOf(full), nil
		}
		if err := informer.SetTransform(measure); err != nil {
			return fmt.Errorf("preparing the watch of %s: %w", resource.Resource, err)
		}
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Wait()
	return nil
}

// NeedLeaderElection is false: every replica answers reviews, so every replica watches.
func (n *Needs) NeedLeaderElection() bool { return false }

// identityOf is what the informer keeps of an object: nothing of its content is of further use.
func identityOf(object *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
}
