package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// goldenWritable denies a golden disk that is attached other than read-only below an ephemeral layer: the first student to
// write would change it for all.
func goldenWritable(contract lab.Contract, f Facts) []Violation {
	if f.New == nil {
		return nil
	}
	var violations []Violation
	for _, disk := range f.New.References.Disks {
		if disk.BelowLayer || !isGolden(contract, f.Referents[Reference{PersistentVolumeClaim, disk.Name}].Labels) {
			continue
		}
		violations = append(violations, Violation{
			Code:   GoldenWritable,
			Field:  field.NewPath(disk.Field),
			Found:  fmt.Sprintf("golden disk %q would be writable", disk.Name),
			Remedy: "attach it as ephemeral.persistentVolumeClaim with readOnly: true",
		})
	}
	return violations
}

// goldenProtected denies that a golden disk is deleted, given an owner with which it would go, given a session for whose end
// it would be taken, or stripped of the label that protects it. Only an admin may; and the garbage collector and the namespace
// controller, which act on what an admin did.
func goldenProtected(contract lab.Contract, f Facts) []Violation {
	wasGolden := isGolden(contract, f.oldMetadata().Labels)
	if !wasGolden || f.Requester.Kind == lab.Admin || f.Requester.Kind == lab.TrustedController {
		return nil
	}
	deny := func(path *field.Path, found string) Violation {
		return Violation{
			Code:   GoldenProtected,
			Field:  path,
			Found:  fmt.Sprintf("golden disk %q %s", f.Name, found),
			Remedy: "leave it as it is; only an admin may change it",
		}
	}
	if f.Operation == Delete {
		return []Violation{deny(nil, "would be deleted")}
	}
	if f.Operation != Update {
		return nil
	}
	var violations []Violation
	if len(f.New.Metadata.OwnerReferences) > len(f.Old.Metadata.OwnerReferences) {
		violations = append(violations, deny(field.NewPath("metadata", "ownerReferences"), "would get an owner"))
	}
	if key := contract.Labels.Session; f.New.Metadata.Labels[key] != f.Old.Metadata.Labels[key] {
		violations = append(violations, deny(labelsPath.Key(key), "would get a session"))
	}
	if !isGolden(contract, f.New.Metadata.Labels) {
		violations = append(violations, deny(labelsPath.Key(contract.Labels.Golden), "would lose the label that protects it"))
	}
	return violations
}

func isGolden(contract lab.Contract, labels map[string]string) bool {
	_, golden := labels[contract.Labels.Golden]
	return golden
}
