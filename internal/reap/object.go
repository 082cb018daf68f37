package reap

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Object is what a pass knows of an object in the cluster: its metadata, in the lab's words.
type Object struct {
	Kind      Kind
	Namespace string
	Name      string
	UID       types.UID
	// Session and Environment are the labels' values, empty where the label is missing.
	Session     string
	Environment string
	Created     time.Time
	// Deleting is when its deletion was asked for; nil while nobody did.
	Deleting *time.Time
	// Deadline is the deadline annotation as it is written, empty where it is missing.
	Deadline string
	// Reaped is the annotation that a pass left before it asked for the deletion, empty where there is none.
	Reaped string
	// Owners are the UIDs that its ownerReferences name.
	Owners []types.UID
}

// String names the object as kubectl does.
func (o Object) String() string {
	return o.Kind.Name + "/" + o.Name
}

func newObject(kind Kind, labels lab.Labels, metadata *metav1.PartialObjectMetadata) Object {
	object := Object{
		Kind:        kind,
		Namespace:   metadata.Namespace,
		Name:        metadata.Name,
		UID:         metadata.UID,
		Session:     metadata.Labels[labels.Session],
		Environment: metadata.Labels[labels.Environment],
		Created:     metadata.CreationTimestamp.Time,
		Deadline:    metadata.Annotations[lab.DeadlineAnnotation],
		Reaped:      metadata.Annotations[lab.ReapedAnnotation],
	}
	if metadata.DeletionTimestamp != nil {
		object.Deleting = new(metadata.DeletionTimestamp.Time)
	}
	for _, owner := range metadata.OwnerReferences {
		object.Owners = append(object.Owners, owner.UID)
	}
	return object
}
