package policy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// The paths at which the webhook server answers reviews.
const (
	MutatePath   = "/mutate"
	ValidatePath = "/validate"
)

const (
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

// MutatingConfiguration registers the Mutator, in one entry: every entry costs every request that it matches.
func MutatingConfiguration(contract lab.Contract, endpoint Endpoint) *admissionregistrationv1.MutatingWebhookConfiguration {
	create := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         mutateName,
			ClientConfig: endpoint(MutatePath),
			Rules: []admissionregistrationv1.RuleWithOperations{
				kubevirtRule(create, "virtualmachines"),
				coreRule(create, "secrets", "services", "pods"),
				networkRule(create),
			},
			NamespaceSelector:       guarded(contract),
			MatchConditions:         mutateConditions(contract),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy:      new(admissionregistrationv1.NeverReinvocationPolicy),
			TimeoutSeconds:          new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// ValidatingConfiguration registers the Validator, in one entry. Its match conditions leave out what must go on while every
// replica of ours is down: the API server evaluates them itself.
func ValidatingConfiguration(contract lab.Contract, endpoint Endpoint) *admissionregistrationv1.ValidatingWebhookConfiguration {
	create := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	all := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         validateName,
			ClientConfig: endpoint(ValidatePath),
			Rules: []admissionregistrationv1.RuleWithOperations{
				kubevirtRule(all, "virtualmachines", "virtualmachineinstances"),
				kubevirtRule(create, "virtualmachineinstancereplicasets"),
				poolRule(create),
				coreRule(all, "secrets", "services", "pods", "persistentvolumeclaims"),
				networkRule(all),
			},
			NamespaceSelector: guarded(contract),
			MatchConditions:   validateConditions(contract),
			FailurePolicy:     new(admissionregistrationv1.Fail),
			MatchPolicy:       new(admissionregistrationv1.Equivalent),
			// A granted place is written to the ledger; a dry run only counts.
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:          new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// kubevirtRule, like the others, matches every version of the API, and no subresource: status and scale are KubeVirt's.
func kubevirtRule(operations []admissionregistrationv1.OperationType, resources ...string) admissionregistrationv1.RuleWithOperations {
	return ruleFor("kubevirt.io", operations, resources)
}

func poolRule(operations []admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return ruleFor("pool.kubevirt.io", operations, []string{"virtualmachinepools"})
}

func coreRule(operations []admissionregistrationv1.OperationType, resources ...string) admissionregistrationv1.RuleWithOperations {
	return ruleFor("", operations, resources)
}

func networkRule(operations []admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return ruleFor("networking.k8s.io", operations, []string{"networkpolicies"})
}

func ruleFor(group string, operations []admissionregistrationv1.OperationType, resources []string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{group},
			APIVersions: []string{"*"},
			Resources:   resources,
			Scope:       new(admissionregistrationv1.NamespacedScope),
		},
	}
}

// guarded selects the namespaces of the lab by the label that kube-apiserver itself puts on each.
func guarded(contract lab.Contract) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key:      "kubernetes.io/metadata.name",
		Operator: metav1.LabelSelectorOpIn,
		Values:   append([]string{contract.VMNamespace}, contract.PodNamespaces...),
	}}}
}
