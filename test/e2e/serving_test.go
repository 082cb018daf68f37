package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return string(body)
}

func TestEveryReplicaTellsItsHealthAndItsMetrics(t *testing.T) {
	clean(t)
	for i := range replicas {
		claim := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('1', i), Environment: "prod"})
		_, err := shared.Backends["dev"].CreateObject(t.Context(), claim, metav1.CreateOptions{})
		expectDenied(t, "dev claims prod", err, "EnvironmentMismatch")
	}
	denials := 0
	for _, replica := range shared.Webhook.Replicas() {
		get(t, "http://"+replica.HealthAddress+"/healthz")
		get(t, "http://"+replica.HealthAddress+"/readyz")
		metrics := get(t, "http://"+replica.MetricsAddress+"/metrics")
		if strings.Contains(metrics, `vmwarden_admission_decisions_total{code="EnvironmentMismatch",decision="deny",environment="prod",operation="CREATE"}`) {
			denials++
		}
	}
	if denials == 0 {
		t.Error("no replica counted the denials")
	}
}

// What must work while every replica is down: the API server itself leaves it out of what it asks us.
func TestWithEveryReplicaDownDeletesInTheOwnEnvironmentGoOn(t *testing.T) {
	clean(t)
	fill(t, '2', 2)
	names := machineNames(t)
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
	// Under failurePolicy Fail nobody gets past a webhook that does not answer.
	_, err := shared.Backends["prod"].CreateObject(t.Context(), object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('2', 100), Environment: "prod"}), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) {
		t.Errorf("a create with every replica down: %v, want a 500", err)
	}
	err = shared.Backends["dev"].Machines(lab.VMNamespace).Delete(t.Context(), names[0], metav1.DeleteOptions{})
	if !apierrors.IsInternalError(err) {
		t.Errorf("a delete of another environment's machine: %v, want a 500", err)
	}
	if err := shared.Backends["prod"].Machines(lab.VMNamespace).Delete(t.Context(), names[0], metav1.DeleteOptions{}); err != nil {
		t.Errorf("the backend's delete in its own environment: %v", err)
	}
	insert(t, "prod", expired(sessionID('2', 1)))
	_, run := reapjob(t, "prod", "run")
	expectExit(t, run, 0)
	if left := machineNames(t); len(left) != 0 {
		t.Errorf("virtual machines left: %v", left)
	}
}
