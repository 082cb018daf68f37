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
	Operation Operation
	Requester lab.Requester
	Namespace string
	// Name may be empty at mutation, for an object with generateName.
	Name string
	// UID is empty at mutation of a CREATE: kube-apiserver gives it out only after all mutating webhooks.
	UID    types.UID
	DryRun bool
	// New is the object as it would be stored; nil for a DELETE.
	New *Object
	// Old is the object as it is stored; nil for a CREATE.
	Old *Object
	Now time.Time
}

// Object is what the rules need of a virtual machine.
type Object struct {
	Metadata Metadata
	// HasTemplate tells whether there is a spec.template at all.
	HasTemplate bool
	// Template is spec.template.metadata, which goes to the instances that the virtual machine starts; nil where it is missing.
	Template *Metadata
}

// Metadata is what the rules need of an object's metadata. A nil map is one that the object does not have.
type Metadata struct {
	Name              string
	UID               types.UID
	Labels            map[string]string
	Annotations       map[string]string
	CreationTimestamp metav1.Time
	DeletionTimestamp *metav1.Time
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

// concernsLab tells whether the request is about a lab VM. In the VM namespace that is every virtual machine of somebody who
// is bound by the rules: with labels to decide it, a tenant would escape by leaving them out.
func concernsLab(contract lab.Contract, f Facts) bool {
	switch f.Requester.Kind {
	case lab.Admin, lab.TrustedController:
		return marked(contract.Labels, f.New) || marked(contract.Labels, f.Old)
	default:
		return true
	}
}

func marked(labels lab.Labels, object *Object) bool {
	return object != nil && labels.Marks(object.Metadata.Labels)
}
