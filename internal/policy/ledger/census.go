package ledger

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

var (
	virtualMachines         = kubevirtv1.GroupVersion.WithResource("virtualmachines")
	virtualMachineInstances = kubevirtv1.GroupVersion.WithResource("virtualmachineinstances")
)

// MetadataCensus lists virtual machines and instances, metadata only, from the API server. An instance whose virtual machine
// was deleted around it still holds its memory, so it holds a place. Needs list on both.
type MetadataCensus struct {
	Client    metadata.Interface
	Namespace string
}

// Occupants lists both kinds at the same time, each consistently: with no resourceVersion the API server answers from what
// etcd holds now.
func (c *MetadataCensus) Occupants(ctx context.Context) ([]Occupant, error) {
	var machines, instances []Occupant
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		machines, err = c.list(ctx, virtualMachines)
		return err
	})
	group.Go(func() (err error) {
		instances, err = c.list(ctx, virtualMachineInstances)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return append(machines, instances...), nil
}

func (c *MetadataCensus) list(ctx context.Context, resource schema.GroupVersionResource) ([]Occupant, error) {
	list, err := c.Client.Resource(resource).Namespace(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s in %s: %w", resource.Resource, c.Namespace, err)
	}
	occupants := make([]Occupant, len(list.Items))
	for i := range list.Items {
		occupants[i] = Occupant{Name: list.Items[i].Name, UID: list.Items[i].UID}
	}
	return occupants, nil
}
