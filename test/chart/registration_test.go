package chart

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// registered are both configurations. What their conditions let through is tested where they are evaluated: the lab of test/e2e runs
// on this chart.
func registered(t *testing.T, objects []*unstructured.Unstructured) (*admissionregistrationv1.MutatingWebhook, *admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "vmwarden")
	validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "vmwarden")
	if len(mutating.Webhooks) != 1 || len(validating.Webhooks) != 1 {
		t.Fatalf("%d and %d entries, want one each", len(mutating.Webhooks), len(validating.Webhooks))
	}
	return &mutating.Webhooks[0], &validating.Webhooks[0]
}

func TestTheRegistrationSaysWhatItCostsAndAsksNobodyElse(t *testing.T) {
	mutating, validating := registered(t, render(t, release(newcomer)))
	if *mutating.SideEffects != admissionregistrationv1.SideEffectClassNone || *validating.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
		t.Errorf("sideEffects %s and %s", *mutating.SideEffects, *validating.SideEffects)
	}
	if *mutating.FailurePolicy != admissionregistrationv1.Fail || *validating.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("failurePolicy %s and %s, want Fail", *mutating.FailurePolicy, *validating.FailurePolicy)
	}
	for _, entry := range []struct {
		path    string
		client  admissionregistrationv1.WebhookClientConfig
		timeout *int32
	}{{policy.MutatePath, mutating.ClientConfig, mutating.TimeoutSeconds}, {policy.ValidatePath, validating.ClientConfig, validating.TimeoutSeconds}} {
		service := entry.client.Service
		if service.Namespace != "vmwarden" || service.Name != "vmwarden-webhook" || *service.Path != entry.path || *service.Port != 443 {
			t.Errorf("%s: service %+v", entry.path, service)
		}
		if time.Duration(*entry.timeout)*time.Second <= ledger.DecisionTimeout {
			t.Errorf("%s: the API server gives up after %ds, before a decision of %s ends", entry.path, *entry.timeout, ledger.DecisionTimeout)
		}
	}
}

func TestEveryOperationThatARuleJudgesIsReviewed(t *testing.T) {
	_, validating := registered(t, render(t, release(newcomer)))
	reviewed := map[string][]admissionregistrationv1.OperationType{}
	for _, rule := range validating.Rules {
		if !slices.Equal(rule.APIVersions, []string{"*"}) || *rule.Scope != admissionregistrationv1.NamespacedScope {
			t.Errorf("rule %+v leaves out a version, or asks about objects of no namespace", rule)
		}
		for _, resource := range rule.Resources {
			reviewed[resource] = rule.Operations
		}
	}
	create := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	all := append(slices.Clone(create), admissionregistrationv1.Update, admissionregistrationv1.Delete)
	want := map[string][]admissionregistrationv1.OperationType{
		"virtualmachines": all, "virtualmachineinstances": all, "virtualmachineinstancereplicasets": create, "virtualmachinepools": create,
		"secrets": all, "services": all, "networkpolicies": all, "pods": all, "persistentvolumeclaims": all,
	}
	if difference := cmp.Diff(want, reviewed); difference != "" {
		t.Errorf("what is reviewed (+) is not what the rules judge (-):\n%s", difference)
	}
}

func TestOnlyTheLabsNamespacesAreReviewed(t *testing.T) {
	mutating, validating := registered(t, render(t, release(split(t))))
	want := []string{"class-7", "class-7-pods", "class-8-pods"}
	for _, selector := range []string{mutating.NamespaceSelector.MatchExpressions[0].Key, validating.NamespaceSelector.MatchExpressions[0].Key} {
		if selector != "kubernetes.io/metadata.name" {
			t.Errorf("namespaces are selected by %s, a label that anybody may set", selector)
		}
	}
	for _, values := range [][]string{mutating.NamespaceSelector.MatchExpressions[0].Values, validating.NamespaceSelector.MatchExpressions[0].Values} {
		if !slices.Equal(values, want) {
			t.Errorf("namespaces %v, want %v", values, want)
		}
	}
}

func TestInModeAuditTheAPIServerGoesOnWithoutUs(t *testing.T) {
	mutating, validating := registered(t, render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{"config.mode=Audit"}}))
	if *validating.FailurePolicy != admissionregistrationv1.Ignore || *mutating.FailurePolicy != admissionregistrationv1.Ignore {
		t.Error("failurePolicy is not Ignore")
	}
}

func TestTheCABundleIsLeftToWhoeverKeepsTheCertificate(t *testing.T) {
	for source, want := range map[string]string{"SelfManaged": "", "CertManager": "", "Secret": "the authority"} {
		_, validating := registered(t, render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{
			"webhook.certificate.source=" + source, "webhook.certificate.secretName=given", "webhook.certificate.caBundle=the authority",
		}}))
		if got := string(validating.ClientConfig.CABundle); got != want {
			t.Errorf("source %s: caBundle %q, want %q", source, got, want)
		}
	}
}
