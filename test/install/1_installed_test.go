package install_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/chart"
)

// TestTheAPIServerKnowsEveryFieldThatTheChartRenders has the real API server validate all that is rendered, strictly, but for the
// resources of operators that are not installed here.
func TestTheAPIServerKnowsEveryFieldThatTheChartRenders(t *testing.T) {
	rendering, err := helm.Template(t.Context(), chart.Release{Name: "everything", Namespace: ownNamespace, Values: []string{values}, Set: []string{
		"webhook.replicas=3", "webhook.hostNetwork=true", "webhook.priorityClassName=system-cluster-critical", "monitoring.dashboard.enabled=true",
		"networkPolicy.egress[0].ports[0].port=443", "reaper.extraEnv[0].name=A", "reaper.extraEnv[0].value=b", "imagePullSecrets[0]=pull",
		"webhook.nodeSelector.a=b", "webhook.tolerations[0].operator=Exists", "webhook.podLabels.a=b", "webhook.podAnnotations.a=b",
	}})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Objects(rendering)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		resource, namespaced, err := resourceOf(object)
		if err != nil {
			t.Fatal(err)
		}
		var in dynamic.ResourceInterface = client.Resource(resource)
		if namespaced {
			in = client.Resource(resource).Namespace(object.GetNamespace())
		}
		if _, err := in.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	if len(objects) < 25 {
		t.Errorf("only %d objects are rendered", len(objects))
	}
}

func TestAFreshInstallationBecomesReadyAndGuards(t *testing.T) {
	install(t)
	awaitReplicas(t, 2)
	bundles, err := caBundles(t.Context())
	if err != nil || bundles["mutating"] == "" || bundles["mutating"] != bundles["validating"] {
		t.Fatalf("the API server trusts %v (%v)", bundles, err)
	}
	lesson := backend.Lesson{Session: "a0000000-0000-4000-8000-000000000001", Environment: "prod"}
	created, err := prod.Create(t.Context(), backend.VMContainerDisk, lesson)
	if err != nil {
		t.Fatal(err)
	}
	if deadline := created[0].GetAnnotations()[lab.DeadlineAnnotation]; deadline == "" {
		t.Errorf("the machine is not stamped: %v", created[0].GetAnnotations())
	}
	_, err = prod.Create(t.Context(), backend.VMContainerDisk, backend.Lesson{Session: "a0000000-0000-4000-8000-000000000002", Environment: "dev"})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), string(policy.EnvironmentMismatch)) {
		t.Errorf("a false claim: %v, want a denial by %s", err, policy.EnvironmentMismatch)
	}
	if err := prod.Machines(vmNamespace).Delete(t.Context(), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheCronJobStartsAPassAtTheMinuteAndItReaps(t *testing.T) {
	session := "b0000000-0000-4000-8000-000000000001"
	name := backend.Lesson{Session: session}.VMName()
	create(t, session)
	connection, err := pgx.Connect(t.Context(), database.URL("prod"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.WithoutCancel(t.Context()))
	if _, err := connection.Exec(t.Context(), `insert into sessions (id, user_id, lesson_id, runtime, status, vm_name, started_at, expires_at)
		values ($1::uuid, 'u', 'systemd-1', 'vm', 'running', $2, now() - interval '1 hour', now() - interval '1 minute')`, session, name); err != nil {
		t.Fatal(err)
	}
	expectGone(t, name)
	await(t, "the row says so", func(ctx context.Context) error {
		var status string
		if err := connection.QueryRow(ctx, `select status from sessions where id = $1::uuid`, session).Scan(&status); err != nil {
			return err
		}
		if status != "expired" {
			return fmt.Errorf("its status is %q", status)
		}
		return nil
	})
	await(t, "the pass is told of in the status ConfigMap and by its Pod", func(ctx context.Context) error {
		status, err := clients.CoreV1().ConfigMaps(vmNamespace).Get(ctx, "vmwarden-status-prod", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !strings.Contains(status.Data["status.json"], `"exitStatus":0`) {
			return fmt.Errorf("the status is %q", status.Data["status.json"])
		}
		pods, err := clients.CoreV1().Pods(ownNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=reaper,vmwarden.io/environment=prod"})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodSucceeded && strings.Contains(pod.Status.ContainerStatuses[0].State.Terminated.Message, "prod") {
				return nil
			}
		}
		return fmt.Errorf("%d Pods, none of which ended well and told of it", len(pods.Items))
	})
}

func TestAnUpgradeKeepsWhatTheClusterHoldsAndLosesNoCreate(t *testing.T) {
	before, err := caBundles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	serving := certificateSecret(t).Data
	for i, set := range []string{"webhook.podAnnotations.upgrade=first", "config.caps.vms=7"} {
		stop := stream(t)
		install(t, set)
		t.Logf("upgrade %d: %d creates went through", i+1, stop())
	}
	after, err := caBundles(t.Context())
	if err != nil || after["mutating"] != before["mutating"] || after["validating"] != before["validating"] {
		t.Errorf("an upgrade changed what the API server trusts (%v)", err)
	}
	if !bytes.Equal(certificateSecret(t).Data["tls.crt"], serving["tls.crt"]) {
		t.Error("an upgrade changed the certificate")
	}
	status, err := clients.CoreV1().ConfigMaps(vmNamespace).Get(t.Context(), "vmwarden-status-prod", metav1.GetOptions{})
	if err != nil || status.Data["status.json"] == "" {
		t.Errorf("an upgrade emptied the status (%v)", err)
	}
}
