package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/lab"
)

const apiServer, etcd, controllerManager = "kube-apiserver", "etcd", "kube-controller-manager"

// must fails the test for an error of the fault itself.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func typed(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	clients, err := shared.Clients()
	must(t, err)
	return clients
}

func awaitAPIServer(t *testing.T) {
	t.Helper()
	await(t, "the API server answers", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patienceOfBackend)
		defer cancel()
		_, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		return err
	})
}

func apiServerRestarts(t *testing.T, w *world) func() {
	w.during = func() error {
		w.interruptions = append(w.interruptions, time.Now())
		return shared.ControlPlane.Restart(context.WithoutCancel(t.Context()), apiServer)
	}
	return func() { awaitAPIServer(t) }
}

// pauses stops a component for a part of the time.
func pauses(component string) func(t *testing.T, w *world) func() {
	return func(t *testing.T, w *world) func() {
		var paused bool
		w.during = func() error {
			paused = !paused
			if paused {
				return shared.ControlPlane.Pause(component)
			}
			return shared.ControlPlane.Resume(component)
		}
		return func() {
			must(t, shared.ControlPlane.Resume(component))
			awaitAPIServer(t)
		}
	}
}

// stops pauses a component for all of the time.
func stops(component string) func(t *testing.T, w *world) func() {
	return func(t *testing.T, _ *world) func() {
		must(t, shared.ControlPlane.Pause(component))
		return func() {
			must(t, shared.ControlPlane.Resume(component))
			awaitAPIServer(t)
		}
	}
}

// rightsAreTaken takes every RoleBinding of our accounts in the VM namespace away: the API server answers 403.
func rightsAreTaken(t *testing.T, _ *world) func() {
	bindings := typed(t).RbacV1().RoleBindings(lab.VMNamespace)
	found, err := bindings.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=vmwarden"})
	must(t, err)
	if len(found.Items) < 3 {
		t.Fatalf("%d RoleBindings are ours, want those of the webhook and both reapers", len(found.Items))
	}
	for _, binding := range found.Items {
		must(t, bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
	}
	must(t, awaitOwnRights(t.Context(), t, false))
	return func() {
		for _, binding := range found.Items {
			again := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels, Annotations: binding.Annotations},
				Subjects:   binding.Subjects, RoleRef: binding.RoleRef,
			}
			_, err := bindings.Create(context.WithoutCancel(t.Context()), again, metav1.CreateOptions{})
			must(t, err)
		}
	}
}

// awaitOwnRights waits until the webhook and the reapers may list machines, or may not.
func awaitOwnRights(ctx context.Context, t *testing.T, allowed bool) error {
	t.Helper()
	users := []string{"system:serviceaccount:vmwarden:vmwarden-webhook"}
	for _, environment := range lab.Environments {
		users = append(users, lab.ReaperUsername(environment))
	}
	for _, user := range users {
		wanted := authorizationv1.ResourceAttributes{Namespace: lab.VMNamespace, Verb: "list", Group: "kubevirt.io", Resource: "virtualmachines"}
		if err := controlplane.AwaitAccess(ctx, typed(t), allowed, user, wanted); err != nil {
			return err
		}
	}
	return nil
}

// tooManyRequests makes the API server's own priority and fairness answer 429 to our accounts.
func tooManyRequests(t *testing.T, w *world) func() {
	const name = "vmwarden-test-jail"
	flowControl := typed(t).FlowcontrolV1()
	_, err := flowControl.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(0)), LendablePercent: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	everything := flowcontrolv1.PolicyRulesWithSubjects{
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
		}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	for _, account := range [][2]string{{"vmwarden", "vmwarden-webhook"}, {"ttlab-prod", "reaper"}, {"ttlab-dev", "reaper"}} {
		everything.Subjects = append(everything.Subjects, flowcontrolv1.Subject{
			Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: account[0], Name: account[1]},
		})
	}
	_, err = flowControl.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
			MatchingPrecedence:         2, Rules: []flowcontrolv1.PolicyRulesWithSubjects{everything},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	reaper := w.reapers[0].environment
	account, err := shared.ReaperConfig(t.Context(), reaper)
	must(t, err)
	client, err := kubernetes.NewForConfig(account)
	must(t, err)
	await(t, "the API server answers 429", func(ctx context.Context) error {
		// Without the client's own patience with a 429.
		result := client.CoreV1().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx)
		if err := result.Error(); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("the answer is %w", errors.Join(errors.New("no 429"), err))
		}
		return nil
	})
	return func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, flowControl.FlowSchemas().Delete(ctx, name, metav1.DeleteOptions{}))
		must(t, flowControl.PriorityLevelConfigurations().Delete(ctx, name, metav1.DeleteOptions{}))
	}
}

// internalErrors makes the API server answer 500 to every deletion of a machine and every write of the ledger: it asks a webhook of
// the test's own at an address where nobody listens.
func internalErrors(t *testing.T, _ *world) func() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	const name = "vmwarden-test-obstacle"
	registrations := typed(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	writes := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
	_, err = registrations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:          "obstacle.lab.test",
			ClientConfig:  admissionregistrationv1.WebhookClientConfig{URL: new("https://" + listener.Addr().String()), CABundle: shared.ControlPlane.CA()},
			Rules:         []admissionregistrationv1.RuleWithOperations{lab.DeletesOfMachines(), writes},
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(5)), AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": lab.VMNamespace}},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	await(t, "a deletion is answered with 500", func(ctx context.Context) error {
		machines, err := shared.AdminBackend.Machines(lab.VMNamespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(machines.Items) == 0 {
			return errors.Join(errors.New("no machine to try it on"), err)
		}
		if err := shared.DryDelete(ctx, machines.Items[0].Name); !apierrors.IsInternalError(err) {
			return fmt.Errorf("the answer is %w", errors.Join(errors.New("no 500"), err))
		}
		return nil
	})
	return func() {
		must(t, registrations.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		must(t, shared.AwaitDeletable(context.WithoutCancel(t.Context())))
	}
}

// nothingAdmitted is what has to be where nobody can count.
func nothingAdmitted(t *testing.T, counts map[string]int, _ map[int]int) {
	t.Helper()
	if counts["admitted"] > 0 {
		t.Errorf("%d creates were admitted", counts["admitted"])
	}
}

func passesSay(statuses ...int) func(t *testing.T, counts map[string]int, passes map[int]int) {
	return func(t *testing.T, _ map[string]int, passes map[int]int) {
		t.Helper()
		onlyStatuses(t, passes, statuses...)
	}
}

func both(judges ...func(t *testing.T, counts map[string]int, passes map[int]int)) func(t *testing.T, counts map[string]int, passes map[int]int) {
	return func(t *testing.T, counts map[string]int, passes map[int]int) {
		t.Helper()
		for _, judge := range judges {
			judge(t, counts, passes)
		}
	}
}

// couldNot are the statuses of passes that met with what they could not do.
var couldNot = passesSay(reap.ExitCouldNotRun, reap.ExitItemsFailed)

// anyStatus are all statuses but that of a pass that had to be killed.
var anyStatus = passesSay(reap.ExitClean, reap.ExitCouldNotRun, reap.ExitItemsFailed)
