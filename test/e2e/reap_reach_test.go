package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/lab"
)

// TestAnInstanceWhoseMachineIsGoneIsAnOrphan has instances as a deletion with propagationPolicy Orphan leaves them: they hold their
// memory, and no machine counts it. One is of prod, one of dev, and one of nobody in particular.
func TestAnInstanceWhoseMachineIsGoneIsAnOrphan(t *testing.T) {
	clean(t)
	instances := shared.AdminBackend.Instances(lab.VMNamespace)
	labels := map[string]map[string]string{
		"of-prod":   {"ttlab.io/lab": "true", "ttlab.io/session": sessionID('q', 41), "ttlab.io/env": "prod"},
		"of-dev":    {"ttlab.io/lab": "true", "ttlab.io/session": sessionID('q', 42), "ttlab.io/env": "dev"},
		"of-nobody": {"ttlab.io/lab": "true", "ttlab.io/session": sessionID('q', 43)},
	}
	for name, own := range labels {
		instance := &kubevirtv1.VirtualMachineInstance{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own},
			Spec:       kubevirtv1.VirtualMachineInstanceSpec{Domain: kubevirtv1.DomainSpec{Devices: kubevirtv1.Devices{}}},
		}
		if _, err := instances.Create(t.Context(), instance, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p := pass(t, "prod")
	p.Settings.OrphanMinimumAge = 0
	if report := p.Run(t.Context()); report.ExitStatus() != reap.ExitClean || len(report.Items) != 1 {
		t.Errorf("report = %+v, want one item", report)
	}
	left, err := instances.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, instance := range left.Items {
		names = append(names, instance.Name)
	}
	if diff := cmp.Diff([]string{"of-dev", "of-nobody"}, names); diff != "" {
		t.Errorf("instances left (-want +got):\n%s", diff)
	}
}

// TestClocksThatDisagreeHoldEverythingBack puts the machine's clock forward: by it, the deadline has passed.
func TestClocksThatDisagreeHoldEverythingBack(t *testing.T) {
	clean(t)
	live, ended := sessionID('q', 51), sessionID('q', 52)
	for _, session := range []string{live, ended} {
		open(t, "prod", session)
	}
	insert(t, "prod", running(live), expired(ended))
	p := pass(t, "prod")
	p.Clock = later{Duration: 4 * time.Hour}
	report := p.Run(t.Context())
	if len(report.Items) != 0 || len(report.Holds) != 4 || report.ExitStatus() != reap.ExitHeld {
		t.Errorf("report = %+v, want all four directions held", report)
	}
	expectLeft(t, live, ended)
}
