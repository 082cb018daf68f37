package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/lab"
)

const (
	policyName   = "stubborn"
	obstacleName = "obstacle"
	// lookTime is how long a look at a hanging deletion takes.
	lookTime = 500 * time.Millisecond
)

// refuseDeletes makes the API server answer 403 to the deletion of this virtual machine, until acceptDeletes.
func refuseDeletes(t *testing.T, name string) {
	t.Helper()
	admission := clients(t).AdmissionregistrationV1()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: deletesOfMachines(),
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("oldObject.metadata.name != '%s'", name),
				Reason:     new(metav1.StatusReasonForbidden),
				Message:    "stubborn by order of the test",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { acceptDeletes(t) })
	awaitDelete(t, name, apierrors.IsForbidden)
}

// acceptDeletes takes the refusal away. It may be called again.
func acceptDeletes(t *testing.T) {
	t.Helper()
	ctx := contextAfter(t)
	admission := clients(t).AdmissionregistrationV1()
	err := errors.Join(
		ignoreNotFound(admission.ValidatingAdmissionPolicyBindings().Delete(ctx, policyName, metav1.DeleteOptions{})),
		ignoreNotFound(admission.ValidatingAdmissionPolicies().Delete(ctx, policyName, metav1.DeleteOptions{})),
	)
	if err != nil {
		t.Fatal(err)
	}
	awaitDeletable(t)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func deletesOfMachines() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"},
		},
	}
}

// dryDelete asks what a deletion would be answered.
func dryDelete(ctx context.Context, name string) error {
	return shared.AdminBackend.Machines(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
}

// awaitDelete waits until the API server answers a deletion of the virtual machine as told.
func awaitDelete(t *testing.T, name string, answer func(error) bool) {
	t.Helper()
	await(t, "the obstacle takes effect", func(ctx context.Context) error {
		if err := dryDelete(ctx, name); !answer(err) {
			return fmt.Errorf("not the answer waited for: %w", err)
		}
		return nil
	})
}

// awaitDeletable waits until no obstacle stands before any virtual machine.
func awaitDeletable(t *testing.T) {
	t.Helper()
	ctx := contextAfter(t)
	machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range machines.Items {
		for err := dryDelete(ctx, machine.Name); err != nil; err = dryDelete(ctx, machine.Name) {
			if ctx.Err() != nil {
				t.Fatalf("virtual machine %s still cannot be deleted: %v", machine.Name, err)
			}
		}
	}
}

// obstruct puts a webhook of the test's own before the deletion of this virtual machine. Where nobody listens the API server
// answers 500; where somebody listens and never answers, the request hangs.
func obstruct(t *testing.T, name string, hang bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if hang {
		t.Cleanup(func() { _ = listener.Close() })
	} else if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	registerObstacle(t, listener.Addr().String(), name)
	t.Cleanup(func() { unobstruct(t) })
	await(t, "the obstacle takes effect", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		if dryDelete(ctx, name) == nil {
			return errors.New("the deletion is still accepted")
		}
		return nil
	})
}

// registerObstacle makes the API server ask at this address before it deletes the virtual machine.
func registerObstacle(t *testing.T, address, name string) {
	t.Helper()
	admission := clients(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: obstacleName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "obstacle.lab.test",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://" + address), CABundle: shared.ControlPlane.CA()},
			Rules:        []admissionregistrationv1.RuleWithOperations{deletesOfMachines()},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "this-one", Expression: fmt.Sprintf("oldObject.metadata.name == '%s'", name)},
			},
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(30)), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if _, err := admission.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// unobstruct takes the obstacle away. It may be called again.
func unobstruct(t *testing.T) {
	t.Helper()
	err := clients(t).AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(contextAfter(t), obstacleName, metav1.DeleteOptions{})
	if err := ignoreNotFound(err); err != nil {
		t.Fatal(err)
	}
	awaitDeletable(t)
}
