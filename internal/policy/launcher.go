package policy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// launcherLabel and launcherValue mark the Pod in which KubeVirt runs an instance.
const (
	launcherLabel = "kubevirt.io"
	launcherValue = "virt-launcher"
)

func isLauncher(object *Object) bool {
	return object != nil && object.Metadata.Labels[launcherLabel] == launcherValue
}

// launcherDeadline reads the deadline that the virtual machine handed down to its launcher Pod. It reports false for a Pod
// without one, or with one that cannot be read: then nobody can say that it has passed.
func launcherDeadline(object *Object) (time.Time, bool) {
	if !isLauncher(object) {
		return time.Time{}, false
	}
	deadline, err := lab.ParseDeadline(object.Metadata.Annotations[lab.DeadlineAnnotation])
	return deadline, err == nil
}

// deadlinePassed denies the launcher Pod of a virtual machine that may not run any more. The kubelet ended the one before it;
// KubeVirt would start the next at once, and for ever.
func deadlinePassed(_ lab.Contract, f Facts) []Violation {
	if f.Operation != Create {
		return nil
	}
	deadline, known := launcherDeadline(f.New)
	if !known || f.Now.Before(deadline) {
		return nil
	}
	return []Violation{{
		Code:   DeadlinePassed,
		Field:  field.NewPath("metadata", "annotations").Key(lab.DeadlineAnnotation),
		Found:  fmt.Sprintf("the virtual machine's deadline %s has passed", lab.FormatDeadline(deadline)),
		Remedy: "delete the virtual machine; it cannot be started again",
	}}
}
