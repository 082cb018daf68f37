package policy

import (
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// stamps gives the patch that completes a lab object at its creation. It only ever adds: a value that the object brings is left
// for the rules to judge. The exceptions are who created a virtual machine, which is ours to say and nobody else's, and a Pod's
// activeDeadlineSeconds, which is cut to what it may be. lead is the session's first virtual machine, nil where there is none.
//
// An update is never stamped: an object from before vmwarden would become the property of whoever touches it first.
func stamps(contract lab.Contract, f Facts, lead *metav1.OwnerReference) []jsonpatch.Operation {
	if f.Operation != Create {
		return nil
	}
	if f.Kind == Pod {
		return podStamps(contract, f)
	}
	if f.Requester.Kind == lab.Unknown || !concernsLab(contract, f) {
		return nil
	}
	switch f.Kind {
	case VirtualMachine:
		return machineStamps(contract, f, lead)
	case Secret, Service, NetworkPolicy:
		return belongingStamps(contract, f)
	}
	return nil
}

// belongingStamps completes what belongs to a session.
func belongingStamps(contract lab.Contract, f Facts) []jsonpatch.Operation {
	if !f.Requester.ActsForEnvironment() || !marked(contract.Labels, f.New) {
		return nil
	}
	return addMissing("/metadata/labels", f.New.Metadata.Labels, map[string]string{contract.Labels.Environment: f.Requester.Environment})
}

// machineStamps completes a virtual machine.
func machineStamps(contract lab.Contract, f Facts, lead *metav1.OwnerReference) []jsonpatch.Operation {
	deadline := f.New.Metadata.Annotations[lab.DeadlineAnnotation]
	if deadline == "" {
		deadline = lab.FormatDeadline(contract.Lifetimes.Deadline(f.Now))
	}
	labels, templateLabels := machineLabels(contract, f)

	patch := leadStamp(f, lead)
	patch = append(patch, addMissing("/metadata/labels", f.New.Metadata.Labels, labels)...)
	patch = append(patch, addMissing("/metadata/annotations", f.New.Metadata.Annotations, map[string]string{
		lab.DeadlineAnnotation:  deadline,
		lab.CreatedByAnnotation: f.Requester.Username,
	})...)
	if forged, present := f.New.Metadata.Annotations[lab.CreatedByAnnotation]; present && forged != f.Requester.Username {
		patch = append(patch, jsonpatch.NewOperation("replace", pointer("/metadata/annotations", lab.CreatedByAnnotation), f.Requester.Username))
	}
	if !f.New.HasTemplate {
		return patch
	}
	if f.New.Template == nil {
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/template/metadata", map[string]any{}))
	}
	patch = append(patch, addMissing("/spec/template/metadata/labels", templateOf(f.New).Labels, templateLabels)...)
	return append(patch, addMissing("/spec/template/metadata/annotations", templateOf(f.New).Annotations, map[string]string{
		lab.DeadlineAnnotation: deadline,
	})...)
}

// machineLabels are the labels that a virtual machine and its template have to carry. The template gets the requester's own
// environment even where the object claims another: the claim is one fault, not two.
func machineLabels(contract lab.Contract, f Facts) (machine, template map[string]string) {
	environment := f.New.Metadata.Labels[contract.Labels.Environment]
	machine = map[string]string{}
	if f.Requester.ActsForEnvironment() {
		environment = f.Requester.Environment
		machine[contract.Labels.Environment] = environment
	}
	template = map[string]string{
		contract.Labels.Environment: environment,
		contract.Labels.Session:     f.New.Metadata.Labels[contract.Labels.Session],
		contract.Labels.Lab:         f.New.Metadata.Labels[contract.Labels.Lab],
	}
	maps.DeleteFunc(template, func(_, value string) bool { return value == "" })
	return machine, template
}

// leadStamp links a group's member to its lead, so that it goes when the lead goes. A member that brings an owner of its own is
// left for the rules to judge.
func leadStamp(f Facts, lead *metav1.OwnerReference) []jsonpatch.Operation {
	if lead == nil || len(f.New.Metadata.OwnerReferences) > 0 {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/ownerReferences", []metav1.OwnerReference{*lead})}
}

// addMissing adds to the map at path what it does not have, and the map itself where there is none.
func addMissing(path string, present, wanted map[string]string) []jsonpatch.Operation {
	missing := maps.Clone(wanted)
	maps.DeleteFunc(missing, func(key, _ string) bool {
		_, found := present[key]
		return found
	})
	if len(missing) == 0 {
		return nil
	}
	if present == nil {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, missing)}
	}
	var patch []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		patch = append(patch, jsonpatch.NewOperation("add", pointer(path, key), missing[key]))
	}
	return patch
}

// pointer is the JSON pointer (RFC 6901) of a key in the map at path.
func pointer(path, key string) string { return path + "/" + escapeKey.Replace(key) }

var escapeKey = strings.NewReplacer("~", "~0", "/", "~1")
