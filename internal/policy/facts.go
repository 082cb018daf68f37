package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Operation is what is asked to be done with an object.
type Operation string

// The operations that are judged.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Facts is all that the rules look at, gathered once for a request.
type Facts struct {
	// Review is the review's own id, which kube-apiserver makes up anew for each time that it asks.
	Review    types.UID
	Kind      Kind
	Operation Operation
	Requester lab.Requester
	Namespace string
	// Name may be empty at mutation, for an object with generateName.
	Name string
	// UID is empty at mutation of a CREATE: kube-apiserver gives it out only after all mutating webhooks.
	UID    types.UID
	DryRun bool
	// Orphaning is true for a DELETE that would leave what the object owns running without it.
	Orphaning bool
	// New is the object as it would be stored; nil for a DELETE.
	New *Object
	// Old is the object as it is stored; nil for a CREATE.
	Old *Object
	// Referents are what the object newly refers to, as the API server has it now. One that is not in here was not looked up.
	Referents map[Reference]Referent
	Now       time.Time
	// Raw is New as it came.
	Raw []byte
}

// Object is what the rules need of an object. What a kind does not have is empty.
type Object struct {
	Metadata Metadata
	// HasTemplate tells whether there is a spec.template at all.
	HasTemplate bool
	// Template is spec.template.metadata, which goes to the instances that the virtual machine starts; nil where it is missing.
	Template *Metadata
	// References are what a virtual machine refers to by name.
	References lab.References
	// Launch is what a virtual machine's launcher Pod follows from.
	Launch Launch
	// ActiveDeadlineSeconds is how long a Pod may run; nil for as long as it likes.
	ActiveDeadlineSeconds *int64
}

// Launch is the part of a virtual machine, as it came, that what its launcher Pod requests is calculated from: the spec of its template, and
// where its instance type and preference are named. What is missing is empty.
type Launch struct {
	Spec, Instancetype, Preference, InstancetypeRef []byte
}

// Metadata is what the rules need of an object's metadata. A nil map is one that the object does not have.
type Metadata struct {
	Name              string
	UID               types.UID
	Labels            map[string]string
	Annotations       map[string]string
	Finalizers        []string
	OwnerReferences   []metav1.OwnerReference
	CreationTimestamp metav1.Time
	DeletionTimestamp *metav1.Time
}

// Reference names another object of the same namespace.
type Reference struct {
	Kind Kind
	Name string
}

// Referent is what is found under a Reference.
type Referent struct {
	Exists bool
	UID    types.UID
	// Labels are the object's.
	Labels map[string]string
}

// Subject is the object that the request is about: as it would be stored, or, for a DELETE, as it is stored.
func (f Facts) Subject() *Object {
	if f.New != nil {
		return f.New
	}
	return f.Old
}

// Terminating tells whether the object is being deleted already.
func (f Facts) Terminating() bool {
	return f.Old != nil && f.Old.Metadata.DeletionTimestamp != nil
}

// concernsLab tells whether the request is about a lab object. In the VM namespace that is every virtual machine of somebody
// who is bound by the rules, and everything that a backend or a reaper touches: with labels alone to decide it, a tenant would
// escape by leaving them out.
func concernsLab(contract lab.Contract, f Facts) bool {
	if marked(contract.Labels, f.New) || marked(contract.Labels, f.Old) {
		return true
	}
	if f.Requester.Kind == lab.Unknown {
		return f.Kind == VirtualMachine
	}
	return f.Requester.ActsForEnvironment()
}

func marked(labels lab.Labels, object *Object) bool {
	return object != nil && labels.Marks(object.Metadata.Labels)
}

// oldMetadata is the metadata as it is stored, empty for a CREATE.
func (f Facts) oldMetadata() Metadata {
	if f.Old == nil {
		return Metadata{}
	}
	return f.Old.Metadata
}
