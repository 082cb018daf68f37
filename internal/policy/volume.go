package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ttlab/vmwarden/internal/lab"
)

// volumeForeign denies a disk of another session or environment, and a dataVolumeTemplate of a name that is taken: KubeVirt
// would adopt what is there instead of making a fresh disk.
func volumeForeign(contract lab.Contract, f Facts) []Violation {
	if f.New == nil || f.Requester.Kind == lab.Admin {
		return nil
	}
	var violations []Violation
	for _, disk := range f.New.References.Disks {
		if theirs := stranger(contract, f, f.Referents[Reference{PersistentVolumeClaim, disk.Name}]); theirs != "" {
			violations = append(violations, Violation{
				Code:   VolumeForeign,
				Field:  field.NewPath(disk.Field),
				Found:  fmt.Sprintf("PersistentVolumeClaim %q belongs to %s", disk.Name, theirs),
				Remedy: "attach a disk of the virtual machine's own session, or a golden one below an ephemeral layer",
			})
		}
	}
	before := map[string]bool{}
	if f.Old != nil {
		for _, template := range f.Old.References.DataVolumeTemplates {
			before[template.Name] = true
		}
	}
	for _, template := range f.New.References.DataVolumeTemplates {
		if before[template.Name] {
			// What exists under it is the disk that it made.
			continue
		}
		for _, kind := range []Kind{DataVolume, PersistentVolumeClaim} {
			if !f.Referents[Reference{kind, template.Name}].Exists {
				continue
			}
			violations = append(violations, Violation{
				Code:   VolumeForeign,
				Field:  field.NewPath(template.Field),
				Found:  fmt.Sprintf("%s %q exists already and would be adopted as it is", kind, template.Name),
				Remedy: "give the template a name that is free, or delete what is left under it first",
			})
			break
		}
	}
	return violations
}
