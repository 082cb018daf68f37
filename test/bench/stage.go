package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// stage is a lab to measure on.
type stage struct {
	*lab.Lab
	clients *kubernetes.Clientset
	admin   dynamic.Interface
}

// withStage starts a lab, lets work measure on it, and ends it.
func withStage(ctx context.Context, replicas int, work func(*stage) error) (err error) {
	l, err := lab.StartWith(ctx, lab.Options{Progress: os.Stderr, Replicas: replicas, Plain: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	s := &stage{Lab: l}
	if s.clients, err = l.Clients(); err != nil {
		return err
	}
	if s.admin, err = dynamic.NewForConfig(l.Admin); err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	return work(s)
}

// configuration is the lab's with other caps, and budgets that nothing here reaches.
func configuration(machines, concurrency int) string {
	caps := fmt.Sprintf("caps: {vms: %d, cpu: \"1000000\", memory: 1000Ti}", machines)
	passes := fmt.Sprintf("itemTimeout: 30s\n  passTimeout: 30m\n  concurrency: %d", concurrency)
	return strings.NewReplacer("caps: {cpu: 40}", caps, "itemTimeout: 5s", passes).Replace(lab.Config)
}

// openNamespace makes a namespace in which production's backend and the webhook may do anything, with the golden disk in it.
func (s *stage) openNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{
			{Kind: "ServiceAccount", Namespace: "ttlab-prod", Name: "backend"},
			{Kind: "ServiceAccount", Namespace: "vmwarden", Name: "vmwarden-webhook"},
		},
	}
	if _, err := s.clients.RbacV1().RoleBindings(name).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("giving rights in namespace %s: %w", name, err)
	}
	disks, err := backend.Objects(backend.GoldenPVC, backend.Lesson{})
	if err != nil {
		return err
	}
	disks[0].SetNamespace(name)
	if _, err := s.AdminBackend.CreateObject(ctx, disks[0], metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the golden disk of namespace %s: %w", name, err)
	}
	return nil
}

// session gives the id of a session by its number. The first eight characters, of which the backend makes names, tell it from all others.
func session(number int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", number, number) }

// objectOf gives the one object of a manifest for a session, in a namespace.
func objectOf(manifest, namespace, environment string, number int) (*unstructured.Unstructured, error) {
	objects, err := backend.Objects(manifest, backend.Lesson{Session: session(number), Environment: environment})
	if err != nil {
		return nil, err
	}
	objects[0].SetNamespace(namespace)
	return objects[0], nil
}

// populatingAtOnce is how many objects are created at the same time where nothing is measured.
const populatingAtOnce = 16

// populate creates a manifest's object for each of the sessions from one number up to another, in the VM namespace and as an admin.
func (s *stage) populate(ctx context.Context, manifest, environment string, from, to int) error {
	creates, ctx := errgroup.WithContext(ctx)
	creates.SetLimit(populatingAtOnce)
	for number := from; number < to; number++ {
		creates.Go(func() error {
			object, err := objectOf(manifest, lab.VMNamespace, environment, number)
			if err != nil {
				return err
			}
			_, err = s.AdminBackend.CreateObject(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	if err := creates.Wait(); err != nil {
		return fmt.Errorf("populating namespace %s: %w", lab.VMNamespace, err)
	}
	return nil
}

var (
	machines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// clear deletes all objects of a resource in a namespace.
func (s *stage) clear(ctx context.Context, resource schema.GroupVersionResource, namespace string) error {
	if err := s.admin.Resource(resource).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("clearing namespace %s of %s: %w", namespace, resource.Resource, err)
	}
	return nil
}
