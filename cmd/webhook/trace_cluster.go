package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/status"
	"github.com/ttlab/vmwarden/internal/trace"
)

// tracedCluster collects what a cluster holds of a trace. What cannot be read keeps nothing else from being read.
type tracedCluster struct {
	settings traceSettings
	machines metadata.ResourceInterface
	core     kubernetes.Interface
	facts    trace.Facts
}

func newTracedCluster(s traceSettings) (*tracedCluster, error) {
	byMetadata, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	core, err := kubernetes.NewForConfig(s.cluster)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	namespace := s.config.VMNamespace
	return &tracedCluster{
		settings: s, core: core, facts: trace.Facts{Namespace: namespace, Looked: true},
		machines: byMetadata.Resource(kubevirtv1.GroupVersion.WithResource("virtualmachines")).Namespace(namespace),
	}, nil
}

// find finds the machines of a session or by a name.
func (c *tracedCluster) find(ctx context.Context, asked string) error {
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	var problems []error
	if len(validation.IsValidLabelValue(asked)) == 0 {
		selector := labels.Set{c.settings.labels.Session: asked}.String()
		list, err := c.machines.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			problems = append(problems, fmt.Errorf("listing virtual machines: %w", err))
		} else {
			c.facts.Machines = append(c.facts.Machines, list.Items...)
		}
	}
	problems = append(problems, c.get(ctx, asked))
	return c.looked(problems)
}

// looked notes whether all machines could be looked up: one that is missing is gone only then.
func (c *tracedCluster) looked(problems []error) error {
	err := errors.Join(problems...)
	c.facts.Looked = c.facts.Looked && err == nil
	return err
}

// get looks a machine up by its name, unless it is known.
func (c *tracedCluster) get(ctx context.Context, name string) error {
	known := slices.ContainsFunc(c.facts.Machines, func(m metav1.PartialObjectMetadata) bool { return m.Name == name })
	if known || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil
	}
	machine, err := c.machines.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting virtual machine %s: %w", name, err)
	}
	c.facts.Machines = append(c.facts.Machines, *machine)
	return nil
}

// complete looks up the names that the logs told, and reads Events and passes.
func (c *tracedCluster) complete(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	c.facts.At = c.settings.clock.Now()
	var missing []error
	for _, name := range names {
		missing = append(missing, c.get(ctx, name))
	}
	problems := []error{c.looked(missing), c.events(ctx)}
	for _, environment := range c.settings.config.Contract().Environments {
		store := status.Store{ConfigMaps: c.core.CoreV1().ConfigMaps(c.facts.Namespace), Environment: environment}
		found, err := store.Read(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("the passes of %s: %w", environment, err))
			continue
		}
		c.facts.Statuses = append(c.facts.Statuses, found)
	}
	return errors.Join(problems...)
}

// events lists all Events of the namespace: those that name a machine in their text are found by no selector.
func (c *tracedCluster) events(ctx context.Context) error {
	list := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return c.core.CoreV1().Events(c.facts.Namespace).List(ctx, options)
	}))
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if event, ok := object.(*corev1.Event); ok {
			c.facts.Events = append(c.facts.Events, *event)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	return nil
}
