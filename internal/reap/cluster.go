package reap

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/ttlab/vmwarden/internal/lab"
)

// pageSize is how many objects one page of a list holds: what kubectl asks for.
const pageSize = 500

// Cluster reads, marks and deletes lab objects at the API server, by their metadata alone: no Secret's data enters our memory.
type Cluster struct {
	Client   metadata.Interface
	Contract lab.Contract
}

// List gives all objects of a kind in a namespace. Of some kinds only those with the session label are listed; machines are
// listed whole, so that a session's machine without our labels is never taken for missing, and Secrets too, which may be a
// session's by their name alone. The list is consistent: all pages are of one moment. A page that cannot be had makes the whole
// list an error, never a shorter list.
func (c *Cluster) List(ctx context.Context, kind Kind, namespace string) ([]Object, error) {
	options := metav1.ListOptions{Limit: pageSize}
	if !kind.Whole {
		options.LabelSelector = c.Contract.Labels.Session
	}
	var objects []Object
	for {
		page, err := c.Client.Resource(kind.Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource.Resource, namespace, err)
		}
		if page.ResourceVersion == "" {
			// Every list is of some moment. What says none comes from something before the API server, and may well be empty.
			return nil, fmt.Errorf("listing %s in namespace %s: the answer is no list of an API server", kind.Resource.Resource, namespace)
		}
		for i := range page.Items {
			objects = append(objects, newObject(kind, c.Contract.Labels, &page.Items[i]))
		}
		if page.Continue == "" {
			return objects, nil
		}
		options.Continue = page.Continue
	}
}

// Get reads one object afresh. Its error tells NotFound apart (k8s.io/apimachinery/pkg/api/errors).
func (c *Cluster) Get(ctx context.Context, kind Kind, namespace, name string) (Object, error) {
	found, err := c.Client.Resource(kind.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("getting %s %s/%s: %w", kind.Name, namespace, name, err)
	}
	return newObject(kind, c.Contract.Labels, found), nil
}

// Annotate sets an annotation on exactly this object and touches nothing else: on one that was created anew under the same name
// it is a Conflict.
func (c *Cluster) Annotate(ctx context.Context, object Object, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	_, err = c.Client.Resource(object.Kind.Resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("annotating %s %s/%s: %w", object.Kind.Name, object.Namespace, object.Name, err)
	}
	return nil
}

// Delete asks for the deletion of exactly this object: one that was created anew under the same name is a Conflict.
func (c *Cluster) Delete(ctx context.Context, object Object) error {
	err := c.Client.Resource(object.Kind.Resource).Namespace(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &object.UID},
		// Background, whatever the default of the kind is: with Orphan the instance would run on with no owner.
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if err != nil {
		return fmt.Errorf("deleting %s %s/%s: %w", object.Kind.Name, object.Namespace, object.Name, err)
	}
	return nil
}
