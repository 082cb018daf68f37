// Package policy judges what is asked of kube-apiserver about the objects of a lab. Data goes one way: AdmissionReview
// (review.go) → facts → rules → decision → response. Rules do no input or output, and time is passed in.
package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Violation is one reason for a denial.
type Violation struct {
	Code Code
	// Field is what in the object is at fault; nil where it is the request itself.
	Field *field.Path
	// Found says what was found.
	Found string
	// Remedy says what to do instead.
	Remedy string
}

// FieldPath is Field as text, empty for the request itself.
func (v Violation) FieldPath() string {
	if v.Field == nil {
		return ""
	}
	return v.Field.String()
}

// Message is one violation as a sentence.
func (v Violation) Message() string {
	return v.Found + "; " + v.Remedy
}

// rule judges the facts by one of the codes. A rule that does not apply answers nothing.
type rule func(lab.Contract, Facts) []Violation

// always are the rules for what must never change, whatever state a lab object is in.
var always = []rule{environmentImmutable, sessionImmutable, deadlineImmutable}

// The rules for a lab object that is not being deleted, by its kind. An update of a terminating object is how its finalizers
// are removed: whoever stands in the way of that keeps its memory from coming back.
var (
	machineRules = []rule{
		requesterUnknown, environmentMismatch, environmentForeign, sessionMissing, sessionInvalid, deadlineTooLate,
		ownerReferences, cloudInitInline, secretForeign, volumeForeign, goldenWritable, orphaningDelete,
	}
	belongingRules = []rule{environmentMismatch, environmentForeign, sessionInvalid, ownerReferences}
	// KubeVirt knows an instance's launcher Pod by its owner alone: one that lost it runs on.
	instanceRules = append(slices.Clone(belongingRules), orphaningDelete)
)

// labRules gives the rules for a lab object of the kind.
func labRules(kind Kind) []rule {
	switch kind {
	case VirtualMachine:
		return machineRules
	case VirtualMachineInstance:
		return instanceRules
	case Secret, Service, NetworkPolicy, Pod:
		return belongingRules
	}
	return nil
}

// anyones are the rules that do not ask whether an object carries a lab's marks, by its kind.
func anyones(kind Kind) []rule {
	switch kind {
	case Pod:
		return []rule{deadlinePassed}
	case PersistentVolumeClaim:
		return []rule{goldenProtected}
	case VirtualMachineInstance, VirtualMachineInstanceReplicaSet, VirtualMachinePool:
		return []rule{instanceDirect}
	}
	return nil
}

// judge runs all rules, in the order of the codes, and gives every violation.
func judge(contract lab.Contract, f Facts) []Violation {
	rules := anyones(f.Kind)
	if f.Requester.Kind != lab.TrustedController && concernsLab(contract, f) {
		if f.Operation != Update || !f.Terminating() {
			rules = slices.Concat(rules, labRules(f.Kind))
		}
		rules = slices.Concat(rules, always)
	}
	var violations []Violation
	for _, rule := range rules {
		violations = append(violations, rule(contract, f)...)
	}
	return violations
}

var (
	labelsPath              = field.NewPath("metadata", "labels")
	annotationsPath         = field.NewPath("metadata", "annotations")
	templateLabelsPath      = field.NewPath("spec", "template", "metadata", "labels")
	templateAnnotationsPath = field.NewPath("spec", "template", "metadata", "annotations")
)

// templateOf gives the template's metadata, empty where there is none.
func templateOf(object *Object) Metadata {
	if object == nil || object.Template == nil {
		return Metadata{}
	}
	return *object.Template
}
