package ledger

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// The kinds that hold places.
var (
	VirtualMachines         = kubevirtv1.GroupVersion.WithResource("virtualmachines")
	VirtualMachineInstances = kubevirtv1.GroupVersion.WithResource("virtualmachineinstances")
)

// pageSize bounds what the API server and this process hold of one list at a time. Up to so many objects, a list is one call.
const pageSize = 500

// Needs finds out what listed objects request.
type Needs interface {
	// Find gives the needs by UID. Known are needs of virtual machines as they were created.
	Find(ctx context.Context, machines, instances []metav1.PartialObjectMetadata, known map[types.UID]Need) (map[types.UID]Need, error)
}

// Reader reads metadata for the count.
type Reader struct {
	// EnvironmentLabel and SessionLabel say whose an object is.
	EnvironmentLabel, SessionLabel string
	// Deadline reads when an object is due to go; zero where it does not say.
	Deadline func(annotations map[string]string) time.Time
}

func (r Reader) occupant(object *metav1.PartialObjectMetadata) Occupant {
	return Occupant{
		Name:     object.Name,
		UID:      object.UID,
		Tenant:   Tenant{Environment: object.Labels[r.EnvironmentLabel], Session: object.Labels[r.SessionLabel]},
		Deadline: r.Deadline(object.Annotations),
	}
}

// MetadataCensus lists virtual machines and instances, metadata only, from the API server. An instance whose virtual machine
// was deleted around it still holds its memory, so it holds a place. Needs list on both.
type MetadataCensus struct {
	Client    metadata.Interface
	Namespace string
	Reader    Reader
	// Needs is nil where no budget is to be counted.
	Needs Needs
}

// Occupants lists the virtual machines and then, not at the same time, the instances. KubeVirt takes an instance away before its
// virtual machine, but one whose virtual machine is deleted with propagationPolicy Orphan stays: were the instances listed
// first, an instance could start after their list and its virtual machine go before the other, and neither would show the name.
//
// Each list is consistent: with no resourceVersion the API server answers from what etcd holds now, and the further pages are of
// the moment of the first.
func (c *MetadataCensus) Occupants(ctx context.Context, known map[types.UID]Need) ([]Occupant, error) {
	machines, err := c.list(ctx, VirtualMachines)
	if err != nil {
		return nil, err
	}
	instances, err := c.list(ctx, VirtualMachineInstances)
	if err != nil {
		return nil, err
	}
	occupants := make([]Occupant, 0, len(machines)+len(instances))
	for _, list := range [][]metav1.PartialObjectMetadata{machines, instances} {
		for i := range list {
			occupants = append(occupants, c.Reader.occupant(&list[i]))
		}
	}
	if c.Needs == nil {
		return occupants, nil
	}
	needs, err := c.Needs.Find(ctx, machines, instances, known)
	if err != nil {
		return nil, fmt.Errorf("finding out what the virtual machines request: %w", err)
	}
	for i := range occupants {
		occupants[i].Need = needs[occupants[i].UID]
	}
	return occupants, nil
}

func (c *MetadataCensus) list(ctx context.Context, resource schema.GroupVersionResource) ([]metav1.PartialObjectMetadata, error) {
	var items []metav1.PartialObjectMetadata
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := c.Client.Resource(resource).Namespace(c.Namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s in %s: %w", resource.Resource, c.Namespace, err)
		}
		items = append(items, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return items, nil
		}
	}
}
