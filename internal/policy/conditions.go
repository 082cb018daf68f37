package policy

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// This file holds the match conditions: CEL that the API server evaluates itself, also while every replica of ours is down. A
// request is reviewed where all of them are true. Every look at a label is guarded: an error in a condition refuses the request
// under failurePolicy Fail.

// mutateConditions leave out what no stamp is for.
func mutateConditions(contract lab.Contract) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name:       "concerns-a-lab",
		Expression: either("request.resource.resource == 'virtualmachines'", isLabs(contract, "object"), byEnvironment(contract), launcher("object")),
	}}
}

// validateConditions leave out, in this order: what trusted controllers do, but for what they create (the cap binds everybody,
// and a launcher Pod past its deadline comes from one); what concerns no lab; deletions that nobody could object to.
func validateConditions(contract lab.Contract) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{
			Name:       "not-by-a-trusted-controller",
			Expression: either("request.operation == 'CREATE'", "!"+byAnyOf(contract.Identities.Usernames(lab.TrustedController, ""))),
		},
		{
			Name: "concerns-a-lab",
			Expression: either(
				// Every virtual machine, instance, replica set and pool: leaving out the labels is no way around.
				"request.resource.group.endsWith('kubevirt.io')",
				"request.operation == 'CREATE' && "+launcher("object"),
				isLabs(contract, "object"), isLabs(contract, "oldObject"),
				goldenAtStake(contract),
				byEnvironment(contract)),
		},
		{
			// Anybody may delete a lab's Secret, Service, NetworkPolicy or Pod whom RBAC lets (the kubelet, a node drain); only a
			// backend or a reaper may not reach into another environment.
			Name:       "not-a-delete-by-an-outsider",
			Expression: either("request.operation != 'DELETE'", "request.resource.group.endsWith('kubevirt.io')", has("oldObject", contract.Labels.Golden), byEnvironment(contract)),
		},
		{
			Name:       "not-a-delete-in-the-own-environment",
			Expression: notOwnDelete(contract),
		},
	}
}

func either(expressions ...string) string {
	for i, expression := range expressions {
		expressions[i] = "(" + expression + ")"
	}
	return strings.Join(expressions, " || ")
}

// has is true where the object (or oldObject) is there and carries the label.
func has(object, label string) string {
	return fmt.Sprintf("%[1]s != null && has(%[1]s.metadata.labels) && %[2]s in %[1]s.metadata.labels", object, quote(label))
}

// isLabs says in CEL what lab.Labels.Marks says in Go.
func isLabs(contract lab.Contract, object string) string {
	labels := contract.Labels
	return fmt.Sprintf("%[1]s != null && has(%[1]s.metadata.labels) && (%[2]s in %[1]s.metadata.labels || (%[3]s in %[1]s.metadata.labels && %[1]s.metadata.labels[%[3]s] == %[4]s))",
		object, quote(labels.Session), quote(labels.Lab), quote(labels.LabValue))
}

// goldenAtStake is true where a golden disk would be deleted, or changed in what protects it. What the volume controllers write
// on it while it is bound and used is not our business.
func goldenAtStake(contract lab.Contract) string {
	changed := either("request.operation == 'DELETE'", "object != null && has(object.metadata.ownerReferences)",
		has("object", contract.Labels.Session), "!("+has("object", contract.Labels.Golden)+")")
	return has("oldObject", contract.Labels.Golden) + " && (" + changed + ")"
}

func launcher(object string) string {
	return fmt.Sprintf("request.resource.resource == 'pods' && has(%[1]s.metadata.labels) && %[2]s in %[1]s.metadata.labels && %[1]s.metadata.labels[%[2]s] == %[3]s",
		object, quote(launcherLabel), quote(launcherValue))
}

// byEnvironment is true for the backends and reapers of all environments.
func byEnvironment(contract lab.Contract) string {
	return byAnyOf(append(contract.Identities.Usernames(lab.Backend, ""), contract.Identities.Usernames(lab.Reaper, "")...))
}

func byAnyOf(users []string) string {
	quoted := make([]string, len(users))
	for i, user := range users {
		quoted[i] = quote(user)
	}
	return fmt.Sprintf("(request.userInfo.username in [%s])", strings.Join(quoted, ", "))
}

// notOwnDelete leaves out the deletes of backends and reapers in their own environment, unless they would orphan what the object
// owns, or take a golden disk.
func notOwnDelete(contract lab.Contract) string {
	var entries []string
	for _, environment := range contract.Environments {
		for _, kind := range []lab.RequesterKind{lab.Backend, lab.Reaper} {
			for _, user := range contract.Identities.Usernames(kind, environment) {
				entries = append(entries, quote(user)+": "+quote(environment))
			}
		}
	}
	environments := "{" + strings.Join(entries, ", ") + "}"
	key := quote(contract.Labels.Environment)
	return either(
		"request.operation != 'DELETE'",
		fmt.Sprintf("!(request.userInfo.username in %s)", environments),
		fmt.Sprintf("!has(oldObject.metadata.labels) || !(%[1]s in oldObject.metadata.labels)", key),
		fmt.Sprintf("oldObject.metadata.labels[%[1]s] != %[2]s[request.userInfo.username]", key, environments),
		has("oldObject", contract.Labels.Golden),
		"has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan'",
		"has(request.options.orphanDependents) && request.options.orphanDependents",
	)
}

// quote makes a CEL string. Names of accounts, environments and labels hold no character that would need escaping; the
// configuration's validation sees to it.
func quote(value string) string { return "'" + value + "'" }
