package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// orphaningDelete denies a deletion of a machine or an instance that leaves what runs in its Pod without an owner, uncounted; and the finalizer
// that would make an orphaning deletion of every later one that does not say otherwise.
func orphaningDelete(_ lab.Contract, f Facts) []Violation {
	if f.Orphaning {
		return []Violation{{
			Code:   OrphaningDelete,
			Found:  "propagationPolicy Orphan would leave the launcher Pod running, with its memory, and with nothing that it belongs to",
			Remedy: "delete with propagationPolicy Background or Foreground",
		}}
	}
	if f.New == nil || !slices.Contains(f.New.Metadata.Finalizers, metav1.FinalizerOrphanDependents) ||
		slices.Contains(f.oldMetadata().Finalizers, metav1.FinalizerOrphanDependents) {
		return nil
	}
	return []Violation{{
		Code:   OrphaningDelete,
		Field:  field.NewPath("metadata", "finalizers"),
		Found:  "the finalizer \"orphan\" would make every deletion leave the launcher Pod running",
		Remedy: "leave the finalizer out",
	}}
}
