package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/lab"
)

// reconfigure runs the replicas with another configuration until the test ends. New replicas have not seen which virtual machines
// came to be and are gone, so the reservations of those would hold places of the test's until they lapse.
func reconfigure(t *testing.T, configuration string) {
	t.Helper()
	forgetReservations(t)
	if err := shared.Webhook.Run(t.Context(), configuration, replicas); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		forgetReservations(t)
		if err := shared.Webhook.Run(contextAfter(t), lab.Config, replicas); err != nil {
			t.Fatal(err)
		}
	})
}

// withCaps is the lab's configuration with other caps.
func withCaps(t *testing.T, caps string) string {
	t.Helper()
	const own = "caps: {cpu: 40}"
	if !strings.Contains(lab.Config, own) {
		t.Fatalf("the lab's configuration does not contain %s", own)
	}
	return strings.Replace(lab.Config, own, "caps: {"+caps+"}", 1)
}

const quotaName = "machines"

// limitMachines sets a ResourceQuota on virtual machines; unlimitMachines takes it away. The test that calls one calls both.
func limitMachines(t *testing.T, n int64) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quotaName},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/virtualmachines.kubevirt.io": *resource.NewQuantity(n, resource.DecimalSI)}},
	}
	if _, err := clients(t).CoreV1().ResourceQuotas(lab.VMNamespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func unlimitMachines(t *testing.T) {
	t.Helper()
	if err := clients(t).CoreV1().ResourceQuotas(lab.VMNamespace).Delete(t.Context(), quotaName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
