package backend

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"kubevirt.io/client-go/kubevirt"
	kubevirtclient "kubevirt.io/client-go/kubevirt/typed/core/v1"
)

// Backend acts as one identity.
type Backend struct {
	Environment string
	client      dynamic.Interface
	machines    *kubevirt.Clientset
}

// New makes a backend of an environment that signs in by the given configuration.
func New(environment string, config *rest.Config) (*Backend, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the backend's client: %w", err)
	}
	machines, err := kubevirt.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the backend's KubeVirt client: %w", err)
	}
	return &Backend{Environment: environment, client: client, machines: machines}, nil
}

// Machines is KubeVirt's own client for the virtual machines of a namespace.
func (b *Backend) Machines(namespace string) kubevirtclient.VirtualMachineInterface {
	return b.machines.KubevirtV1().VirtualMachines(namespace)
}

// Instances is KubeVirt's own client for the running instances of a namespace.
func (b *Backend) Instances(namespace string) kubevirtclient.VirtualMachineInstanceInterface {
	return b.machines.KubevirtV1().VirtualMachineInstances(namespace)
}

// Create sends a manifest's objects for a lesson, one by one, and stops at the first that is refused.
func (b *Backend) Create(ctx context.Context, file string, lesson Lesson) ([]*unstructured.Unstructured, error) {
	objects, err := Objects(file, lesson)
	if err != nil {
		return nil, err
	}
	created := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		stored, err := b.CreateObject(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return created, err
		}
		created = append(created, stored)
	}
	return created, nil
}

// CreateObject sends one object. The error is the API server's own.
func (b *Backend) CreateObject(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return b.client.Resource(resourceOf(object)).Namespace(object.GetNamespace()).Create(ctx, object, options)
}

// Open opens a session as the backend does: the cloud-init Secret first, then the virtual machine from the given manifest.
func (b *Backend) Open(ctx context.Context, session, manifest string) (*unstructured.Unstructured, error) {
	lesson := Lesson{Session: session, Environment: b.Environment}
	if _, err := b.Create(ctx, CloudInitSecret, lesson); err != nil {
		return nil, err
	}
	created, err := b.Create(ctx, manifest, lesson)
	if err != nil {
		return nil, err
	}
	return created[0], nil
}

// resourceOf keeps the object's version: a tenant may write through any that is served.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return plural
}
