package policy

import (
	"github.com/ttlab/vmwarden/internal/lab"
)

// newReferences lists what the object refers to and did not refer to before: what has to be looked up before it can be judged.
// What was stored already was judged when it came.
func newReferences(contract lab.Contract, f Facts) []Reference {
	if f.New == nil || f.Terminating() || f.Requester.Kind == lab.TrustedController || !concernsLab(contract, f) {
		return nil
	}
	before := map[Reference]bool{}
	if f.Old != nil {
		for _, reference := range referencesOf(f.Kind, f.Old) {
			before[reference] = true
		}
		for _, disk := range newlyWritable(f) {
			delete(before, Reference{PersistentVolumeClaim, disk})
		}
	}
	var wanted []Reference
	for _, reference := range referencesOf(f.Kind, f.New) {
		if !before[reference] {
			before[reference] = true
			wanted = append(wanted, reference)
		}
	}
	return wanted
}

// newlyWritable names the disks that were attached below an ephemeral layer alone, and are now attached otherwise. The name is the
// same and what may be written is not: a golden disk that came in rightly would become writable by a change.
func newlyWritable(f Facts) []string {
	wasWritable := map[string]bool{}
	for _, disk := range f.Old.References.Disks {
		wasWritable[disk.Name] = wasWritable[disk.Name] || !disk.BelowLayer
	}
	var names []string
	for _, disk := range f.New.References.Disks {
		if writable, attached := wasWritable[disk.Name]; attached && !writable && !disk.BelowLayer {
			names = append(names, disk.Name)
		}
	}
	return names
}

func referencesOf(kind Kind, object *Object) []Reference {
	var all []Reference
	for _, owner := range object.Metadata.OwnerReferences {
		if isMachine(owner) {
			all = append(all, Reference{VirtualMachine, owner.Name})
		}
	}
	if kind != VirtualMachine {
		return all
	}
	for _, secret := range object.References.Secrets {
		all = append(all, Reference{Secret, secret.Name})
	}
	for _, disk := range object.References.Disks {
		all = append(all, Reference{PersistentVolumeClaim, disk.Name})
	}
	for _, template := range object.References.DataVolumeTemplates {
		all = append(all, Reference{DataVolume, template.Name}, Reference{PersistentVolumeClaim, template.Name})
	}
	return all
}

// stranger says whose a referent is where it is another session's or environment's than the object that refers to it; empty
// where it is not.
func stranger(contract lab.Contract, f Facts, referent Referent) string {
	key := contract.Labels.Environment
	if theirs, ours := referent.Labels[key], f.New.Metadata.Labels[key]; theirs != "" && theirs != ours {
		return "environment \"" + theirs + "\""
	}
	key = contract.Labels.Session
	if theirs, ours := referent.Labels[key], f.New.Metadata.Labels[key]; theirs != "" && theirs != ours {
		return "another session"
	}
	return ""
}
