package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefusalMessage is what the API server says to a deletion that RefuseDeletes stands before.
const RefusalMessage = "this machine cannot be deleted just now"

// refusalName names the policy and its binding.
const refusalName = "stubborn"

// RefuseDeletes makes the API server answer 403 to the deletion of one virtual machine, by a policy of its own, and waits until it
// does: a policy takes effect by a watch.
func (l *Lab) RefuseDeletes(ctx context.Context, name string) error {
	clients, err := l.Clients()
	if err != nil {
		return err
	}
	admission := clients.AdmissionregistrationV1()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: refusalName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: DeletesOfMachines(),
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("oldObject.metadata.name != '%s'", name),
				Reason:     new(metav1.StatusReasonForbidden),
				Message:    RefusalMessage,
			}},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a deletion fail: %w", err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: refusalName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: refusalName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a deletion fail: %w", err)
	}
	return l.awaitDeleteAnswer(ctx, name, apierrors.IsForbidden)
}

// AcceptDeletes takes the refusal away and waits until every virtual machine can be deleted again. It may be called again.
func (l *Lab) AcceptDeletes(ctx context.Context) error {
	clients, err := l.Clients()
	if err != nil {
		return err
	}
	admission := clients.AdmissionregistrationV1()
	for _, err := range []error{
		admission.ValidatingAdmissionPolicyBindings().Delete(ctx, refusalName, metav1.DeleteOptions{}),
		admission.ValidatingAdmissionPolicies().Delete(ctx, refusalName, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("letting deletions succeed again: %w", err)
		}
	}
	return l.AwaitDeletable(ctx)
}

// AwaitDeletable waits until nothing stands before the deletion of any virtual machine.
func (l *Lab) AwaitDeletable(ctx context.Context) error {
	machines, err := l.AdminBackend.Machines(VMNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the virtual machines: %w", err)
	}
	for _, machine := range machines.Items {
		err := l.awaitDeleteAnswer(ctx, machine.Name, func(err error) bool { return err == nil || apierrors.IsNotFound(err) })
		if err != nil {
			return err
		}
	}
	return nil
}

// DryDelete asks what the deletion of a virtual machine would be answered.
func (l *Lab) DryDelete(ctx context.Context, name string) error {
	return l.AdminBackend.Machines(VMNamespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
}

func (l *Lab) awaitDeleteAnswer(ctx context.Context, name string, wanted func(error) bool) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := l.DryDelete(ctx, name)
		if wanted(err) {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the answer to a deletion of %s: %w", name, errors.Join(ctx.Err(), err))
		}
	}
}

// DeletesOfMachines matches the deletions of virtual machines.
func DeletesOfMachines() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"},
		},
	}
}
