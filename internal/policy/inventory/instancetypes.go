package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

var (
	instanceTypes        = instancetypev1beta1.SchemeGroupVersion.WithResource("virtualmachineinstancetypes")
	clusterInstanceTypes = instancetypev1beta1.SchemeGroupVersion.WithResource("virtualmachineclusterinstancetypes")
	controllerRevisions  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

// namespacedKind is the kind, whatever its case, of an instance type of a namespace. Any other, and none,
// is one of the cluster.
const namespacedKind = "virtualmachineinstancetype"

// InstanceTypes reads instance types. Needs get on them and on ControllerRevisions.
type InstanceTypes struct {
	Client    dynamic.Interface
	Namespace string
}

// errUnnamed: KubeVirt's webhook fills the name in where it is to be inferred from a volume.
var errUnnamed = errors.New("the virtual machine names no instance type")

// Of reads the instance type of a virtual machine: the revision that KubeVirt keeps for it, or, where it keeps none yet, the
// instance type as it is now.
func (i *InstanceTypes) Of(ctx context.Context, machine *kubevirtv1.VirtualMachine) (*instancetypev1beta1.VirtualMachineInstancetypeSpec, error) {
	matcher := machine.Spec.Instancetype
	if revision := revisionOf(machine); revision != "" {
		object, err := i.Client.Resource(controllerRevisions).Namespace(i.Namespace).Get(ctx, revision, metav1.GetOptions{})
		if err == nil {
			return specIn(object, "data", "spec")
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading ControllerRevision %s of an instance type: %w", revision, err)
		}
	}
	if matcher.Name == "" {
		return nil, errUnnamed
	}
	reader := dynamic.ResourceInterface(i.Client.Resource(clusterInstanceTypes))
	if strings.EqualFold(matcher.Kind, namespacedKind) {
		reader = i.Client.Resource(instanceTypes).Namespace(i.Namespace)
	}
	object, err := reader.Get(ctx, matcher.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading instance type %s: %w", matcher.Name, err)
	}
	return specIn(object, "spec")
}

func revisionOf(machine *kubevirtv1.VirtualMachine) string {
	if ref := machine.Status.InstancetypeRef; ref != nil && ref.ControllerRevisionRef != nil && ref.Name == machine.Spec.Instancetype.Name {
		return ref.ControllerRevisionRef.Name
	}
	return machine.Spec.Instancetype.RevisionName
}

func specIn(object *unstructured.Unstructured, path ...string) (*instancetypev1beta1.VirtualMachineInstancetypeSpec, error) {
	content, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the instance type in %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	spec := &instancetypev1beta1.VirtualMachineInstancetypeSpec{}
	if err := json.Unmarshal(encoded, spec); err != nil {
		return nil, fmt.Errorf("reading the instance type in %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return spec, nil
}
