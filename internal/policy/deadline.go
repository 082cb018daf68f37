package policy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// clockTolerance is how far apart the clocks of kube-apiserver, which dates the object, and of the replica that stamped its
// deadline may be.
const clockTolerance = 2 * time.Minute

// deadlineTooLate denies a deadline later than the one that we would stamp, on the virtual machine or on its template.
func deadlineTooLate(contract lab.Contract, f Facts) []Violation {
	if f.Requester.Kind == lab.Admin || f.New == nil {
		return nil
	}
	// kube-apiserver dates the object before it is validated. At mutation it is not dated yet.
	start := f.New.Metadata.CreationTimestamp.Time
	if start.IsZero() {
		start = f.Now
	}
	latest := contract.Lifetimes.Deadline(start).Add(clockTolerance)
	var violations []Violation
	check := func(path *field.Path, old, new map[string]string) {
		value, present := new[lab.DeadlineAnnotation]
		if was, had := old[lab.DeadlineAnnotation]; !present || (had && was == value) {
			return
		}
		violation := Violation{
			Code:   DeadlineTooLate,
			Field:  path.Key(lab.DeadlineAnnotation),
			Remedy: fmt.Sprintf("leave the annotation out and it is set, or name a time no later than %s", lab.FormatDeadline(latest.Add(-clockTolerance))),
		}
		deadline, err := lab.ParseDeadline(value)
		switch {
		case err != nil:
			violation.Found = err.Error()
		case deadline.After(latest):
			violation.Found = fmt.Sprintf("annotation %s is %s, later than a session can last", lab.DeadlineAnnotation, value)
		default:
			return
		}
		violations = append(violations, violation)
	}
	check(annotationsPath, f.oldMetadata().Annotations, f.New.Metadata.Annotations)
	check(templateAnnotationsPath, templateOf(f.Old).Annotations, templateOf(f.New).Annotations)
	return violations
}

// deadlineImmutable denies dropping or altering the deadline annotation: an extension of the session never needs it.
func deadlineImmutable(_ lab.Contract, f Facts) []Violation {
	if f.Operation != Update {
		return nil
	}
	key := lab.DeadlineAnnotation
	violations := immutable(f, DeadlineImmutable, "annotation", annotationsPath.Key(key), f.Old.Metadata.Annotations, f.New.Metadata.Annotations, key)
	return append(violations, immutable(f, DeadlineImmutable, "annotation", templateAnnotationsPath.Key(key), templateOf(f.Old).Annotations, templateOf(f.New).Annotations, key)...)
}
