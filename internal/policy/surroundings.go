package policy

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// MetadataSurroundings looks things up at the API server, metadata only: no Secret's data enters our memory. Needs get on
// Secrets, PersistentVolumeClaims, DataVolumes and virtual machines, and list on virtual machines.
type MetadataSurroundings struct {
	Client   metadata.Interface
	Contract lab.Contract
}

var lookedUp = map[Kind]schema.GroupVersionResource{
	VirtualMachine:        kubevirtv1.GroupVersion.WithResource("virtualmachines"),
	Secret:                corev1.SchemeGroupVersion.WithResource("secrets"),
	PersistentVolumeClaim: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	DataVolume:            {Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"},
}

// maxLookups is how many references are looked up at the same time: more than a lab's machine has, and less than the API server would feel.
const maxLookups = 20

// Referents gets every reference, some at the same time. One that does not exist is in the answer as that; so is a DataVolume
// where CDI is not installed.
func (s *MetadataSurroundings) Referents(ctx context.Context, namespace string, wanted []Reference) (map[Reference]Referent, error) {
	found := make(map[Reference]Referent, len(wanted))
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLookups)
	for _, reference := range wanted {
		group.Go(func() error {
			referent, err := s.get(ctx, namespace, reference)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			found[reference] = referent
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

func (s *MetadataSurroundings) get(ctx context.Context, namespace string, reference Reference) (Referent, error) {
	object, err := s.Client.Resource(lookedUp[reference.Kind]).Namespace(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Referent{}, nil
	}
	if err != nil {
		return Referent{}, fmt.Errorf("getting %s %s/%s: %w", reference.Kind, namespace, reference.Name, err)
	}
	return Referent{Exists: true, UID: object.UID, Labels: object.Labels}, nil
}

// Lead finds the first virtual machine of a session of an environment: the oldest that is not being deleted. It gives nil where
// there is none.
func (s *MetadataSurroundings) Lead(ctx context.Context, namespace, environment, session string) (*metav1.OwnerReference, error) {
	selector := labels.Set{s.Contract.Labels.Session: session, s.Contract.Labels.Environment: environment}.AsSelector()
	list, err := s.Client.Resource(lookedUp[VirtualMachine]).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the virtual machines of session %s: %w", session, err)
	}
	var lead *metav1.PartialObjectMetadata
	for i := range list.Items {
		machine := &list.Items[i]
		if machine.DeletionTimestamp == nil && (lead == nil || machine.CreationTimestamp.Before(&lead.CreationTimestamp)) {
			lead = machine
		}
	}
	if lead == nil {
		return nil, nil
	}
	return machineOwner(lead.Name, lead.UID), nil
}
