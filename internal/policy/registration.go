package policy

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

const (
	// MutatePath is where the webhook server answers mutating reviews.
	MutatePath = "/mutate"
	// ValidatePath is where the webhook server answers validating reviews.
	ValidatePath = "/validate"

	// configurationName names both webhook configurations.
	configurationName = "vmwarden"
	// mutateName and validateName lead the keys of our annotations in the API server's audit log.
	mutateName   = "mutate.vmwarden.io"
	validateName = "validate.vmwarden.io"

	// timeoutSeconds is how long the API server waits for an answer. A decision on a place ends before (see package ledger).
	timeoutSeconds = 10
)

// Endpoint makes the client configuration by which the API server reaches one of the paths.
type Endpoint func(path string) admissionregistrationv1.WebhookClientConfig

// MutatingConfiguration registers the Mutator: creations of virtual machines in the VM namespace, nothing else.
func MutatingConfiguration(contract lab.Contract, endpoint Endpoint) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    mutateName,
			ClientConfig:            endpoint(MutatePath),
			Rules:                   virtualMachineRules(admissionregistrationv1.Create),
			NamespaceSelector:       only(contract.VMNamespace),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy:      new(admissionregistrationv1.NeverReinvocationPolicy),
			TimeoutSeconds:          new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// ValidatingConfiguration registers the Validator. Its match conditions leave out what must go on while every replica of ours
// is down: the API server evaluates them itself.
func ValidatingConfiguration(contract lab.Contract, endpoint Endpoint) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              validateName,
			ClientConfig:      endpoint(ValidatePath),
			Rules:             virtualMachineRules(admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete),
			NamespaceSelector: only(contract.VMNamespace),
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "not-by-a-trusted-controller", Expression: notByTrustedController(contract)},
				{Name: "not-a-delete-in-the-own-environment", Expression: notOwnDelete(contract)},
			},
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchPolicy:   new(admissionregistrationv1.Equivalent),
			// A granted place is written to the ledger; a dry run only counts.
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:          new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// virtualMachineRules match every version of the API, and no subresource: status and scale are KubeVirt's.
func virtualMachineRules(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{"kubevirt.io"},
			APIVersions: []string{"*"},
			Resources:   []string{"virtualmachines"},
			Scope:       new(admissionregistrationv1.NamespacedScope),
		},
	}}
}

func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
}

// notByTrustedController leaves controllers out, but for what they create: the cap binds everybody.
func notByTrustedController(contract lab.Contract) string {
	users := contract.Identities.Usernames(lab.TrustedController, "")
	for i := range users {
		users[i] = quote(users[i])
	}
	return fmt.Sprintf("request.operation == 'CREATE' || !(request.userInfo.username in [%s])", strings.Join(users, ", "))
}

// notOwnDelete leaves out the deletes of backends and reapers in their own environment. Every look at a label is guarded: an
// error in a match condition refuses the request under failurePolicy Fail.
func notOwnDelete(contract lab.Contract) string {
	var entries []string
	for _, environment := range contract.Environments {
		for _, kind := range []lab.RequesterKind{lab.Backend, lab.Reaper} {
			for _, user := range contract.Identities.Usernames(kind, environment) {
				entries = append(entries, quote(user)+": "+quote(environment))
			}
		}
	}
	key := quote(contract.Labels.Environment)
	environments := "{" + strings.Join(entries, ", ") + "}"
	return fmt.Sprintf("request.operation != 'DELETE' || !(request.userInfo.username in %[1]s) || "+
		"!has(oldObject.metadata.labels) || !(%[2]s in oldObject.metadata.labels) || "+
		"oldObject.metadata.labels[%[2]s] != %[1]s[request.userInfo.username]", environments, key)
}

// quote makes a CEL string. Names of accounts, environments and labels hold no character that would need escaping; the
// configuration's validation sees to it.
func quote(value string) string { return "'" + value + "'" }
