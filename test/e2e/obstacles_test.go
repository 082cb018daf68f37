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
	obstacleName = "obstacle"
	// lookTime is how long a look at a hanging deletion takes.
	lookTime = 500 * time.Millisecond
)

// refuseDeletes makes the API server answer 403 to the deletion of this virtual machine, until acceptDeletes.
func refuseDeletes(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() { acceptDeletes(t) })
	if err := shared.RefuseDeletes(contextAfter(t), name); err != nil {
		t.Fatal(err)
	}
}

// acceptDeletes takes the refusal away. It may be called again.
func acceptDeletes(t *testing.T) {
	t.Helper()
	if err := shared.AcceptDeletes(contextAfter(t)); err != nil {
		t.Fatal(err)
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitDeletable waits until no obstacle stands before any virtual machine.
func awaitDeletable(t *testing.T) {
	t.Helper()
	if err := shared.AwaitDeletable(contextAfter(t)); err != nil {
		t.Fatal(err)
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
		if shared.DryDelete(ctx, name) == nil {
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
			Rules:        []admissionregistrationv1.RuleWithOperations{lab.DeletesOfMachines()},
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
