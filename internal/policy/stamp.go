package policy

import (
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/ttlab/vmwarden/internal/lab"
)

// stamps gives the patch that completes a lab VM at its creation. It only ever adds: a value that the object brings is left
// for the rules to judge. The one exception is who created it, which is ours to say and nobody else's.
//
// An update is never stamped: an object from before vmwarden would become the property of whoever touches it first.
func stamps(contract lab.Contract, f Facts) []jsonpatch.Operation {
	if f.Operation != Create || f.Requester.Kind == lab.Unknown || !concernsLab(contract, f) {
		return nil
	}
	deadline := f.New.Metadata.Annotations[lab.DeadlineAnnotation]
	if deadline == "" {
		deadline = lab.FormatDeadline(contract.Lifetimes.Deadline(f.Now))
	}
	// The template gets the requester's own environment even where the object claims another: the claim is one fault, not two.
	environment := f.New.Metadata.Labels[contract.Labels.Environment]
	labels := map[string]string{}
	if f.Requester.ActsForEnvironment() {
		environment = f.Requester.Environment
		labels[contract.Labels.Environment] = environment
	}
	templateLabels := map[string]string{}
	for key, value := range map[string]string{
		contract.Labels.Environment: environment,
		contract.Labels.Session:     f.New.Metadata.Labels[contract.Labels.Session],
		contract.Labels.Lab:         f.New.Metadata.Labels[contract.Labels.Lab],
	} {
		if value != "" {
			templateLabels[key] = value
		}
	}

	patch := addMissing("/metadata/labels", f.New.Metadata.Labels, labels)
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
func pointer(path, key string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
