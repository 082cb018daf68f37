package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/policy"
)

func TestTheChartRegistersWhatTheRulesAreMadeFor(t *testing.T) {
	for name, values := range map[string]string{"newcomer": newcomer, "split": split} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, release(values))
			contract := configured(t, objects).Contract()
			endpoint := func(path string) admissionregistrationv1.WebhookClientConfig {
				return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
					Namespace: "vmwarden", Name: "vmwarden-webhook", Path: &path, Port: new(int32(443)),
				}}
			}
			mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "vmwarden")
			validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "vmwarden")
			mutating.ObjectMeta, mutating.TypeMeta = metav1.ObjectMeta{Name: mutating.Name}, metav1.TypeMeta{}
			validating.ObjectMeta, validating.TypeMeta = metav1.ObjectMeta{Name: validating.Name}, metav1.TypeMeta{}
			if difference := cmp.Diff(policy.MutatingConfiguration(contract, endpoint), mutating); difference != "" {
				t.Errorf("the policy's (-) and the chart's (+) mutating configuration differ:\n%s", difference)
			}
			if difference := cmp.Diff(policy.ValidatingConfiguration(contract, endpoint), validating); difference != "" {
				t.Errorf("the policy's (-) and the chart's (+) validating configuration differ:\n%s", difference)
			}
		})
	}
}

func TestInModeAuditTheAPIServerGoesOnWithoutUs(t *testing.T) {
	objects := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{"config.mode=Audit"}})
	validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "vmwarden")
	mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "vmwarden")
	if *validating.Webhooks[0].FailurePolicy != admissionregistrationv1.Ignore || *mutating.Webhooks[0].FailurePolicy != admissionregistrationv1.Ignore {
		t.Error("failurePolicy is not Ignore")
	}
}

func TestTheCABundleIsLeftToWhoeverKeepsTheCertificate(t *testing.T) {
	for source, want := range map[string]string{"SelfManaged": "", "CertManager": "", "Secret": "the authority"} {
		objects := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{
			"webhook.certificate.source=" + source, "webhook.certificate.secretName=given", "webhook.certificate.caBundle=the authority",
		}})
		validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "vmwarden")
		if got := string(validating.Webhooks[0].ClientConfig.CABundle); got != want {
			t.Errorf("source %s: caBundle %q, want %q", source, got, want)
		}
	}
}
