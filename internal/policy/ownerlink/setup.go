package ownerlink

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ttlab/vmwarden/internal/lab"
)

// AddToScheme makes a manager's client know virtual machines.
func AddToScheme(scheme *runtime.Scheme) error { return kubevirtv1.AddToScheme(scheme) }

// CacheOptions keep the cache to the VM namespace, and in it to the objects of sessions. Of a virtual machine only what
// refers to others is kept: the rest is most of it, and nobody here reads it.
func CacheOptions(contract lab.Contract) (cache.Options, error) {
	marked, err := labels.NewRequirement(contract.Labels.Session, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting by label %s: %w", contract.Labels.Session, err)
	}
	ofSession := cache.ByObject{Label: labels.NewSelector().Add(*marked), Transform: cache.TransformStripManagedFields()}
	machines := ofSession
	machines.Transform = func(object any) (any, error) {
		if machine, ok := object.(*kubevirtv1.VirtualMachine); ok {
			machine.ManagedFields, machine.Annotations, machine.Status = nil, nil, kubevirtv1.VirtualMachineStatus{}
			if template := machine.Spec.Template; template != nil {
				template.ObjectMeta = metav1.ObjectMeta{}
				template.Spec.Domain, template.Spec.Networks = kubevirtv1.DomainSpec{}, nil
			}
		}
		return object, nil
	}
	options := cache.Options{
		DefaultNamespaces: map[string]cache.Config{contract.VMNamespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&kubevirtv1.VirtualMachine{}: machines},
	}
	for _, kind := range kinds() {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		options.ByObject[object] = ofSession
	}
	return options, nil
}

// SetUp adds the controller to a manager. It runs on the leader alone.
func SetUp(m manager.Manager, contract lab.Contract) error {
	toSession := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		session := object.GetLabels()[contract.Labels.Session]
		if session == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: session}}}
	})
	controller := builder.ControllerManagedBy(m).Named("ownerlink").Watches(&kubevirtv1.VirtualMachine{}, toSession)
	for _, kind := range kinds() {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		controller = controller.Watches(object, toSession, builder.OnlyMetadata)
	}
	err := controller.Complete(&Reconciler{Client: m.GetClient(), Live: m.GetAPIReader(), Contract: contract})
	if err != nil {
		return fmt.Errorf("adding the owner links' controller: %w", err)
	}
	return nil
}
