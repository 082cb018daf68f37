package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/trace"
	"github.com/ttlab/vmwarden/test/backend"
)

// With KubeVirt's own controllers a machine has an instance, a launcher Pod and a finalizer.
func TestATraceTellsOfInstanceLauncherAndFinalizerAsKubeVirtHasThem(t *testing.T) {
	shared.Clean(t)
	lesson := session(90)
	name := lesson.VMName()
	open(t, lesson, backend.VMContainerDisk)
	launcher := shared.AwaitRunning(t, name)
	machine, err := machines().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end(t, lesson)
	shared.AwaitVMGone(t, name)

	run, err := shared.Binary(t.Context(), "webhook", "trace", lesson.Session, "-o", "json", shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	var report trace.Report
	if err := json.Unmarshal([]byte(run.Stdout), &report); err != nil {
		t.Fatalf("%v in %s\n%s", err, run.Stdout, run.Stderr)
	}
	// The API server makes the launcher's name: the entry of its creation has none.
	told := func(object, what string) bool {
		return slices.ContainsFunc(report.Timeline, func(l trace.Line) bool {
			return l.Object == object && l.What == what && l.UID == string(machine.UID)
		})
	}
	for _, line := range [][2]string{
		{"virtualmachine/" + name, trace.Created}, {"virtualmachineinstance/" + name, trace.Created}, {"pod/?", trace.Created},
		{"virtualmachine/" + name, trace.DeletionAsked}, {"virtualmachineinstance/" + name, trace.DeletionAsked}, {"pod/" + launcher.Name, trace.DeletionAsked},
		{"virtualmachineinstance/" + name, trace.Gone}, {"virtualmachine/" + name, trace.Gone},
	} {
		if !told(line[0], line[1]) {
			t.Errorf("%s %s is not told", line[0], line[1])
		}
	}
	at := slices.IndexFunc(report.Machines, func(m trace.Machine) bool { return m.UID == string(machine.UID) })
	if at < 0 {
		t.Fatalf("the machine is not among %+v", report.Machines)
	}
	for _, a := range report.Machines[at].Answers {
		if a.Question == trace.Gone && (a.Source != trace.AuditLog || !strings.Contains(a.Text, "last finalizer") || !strings.HasPrefix(a.Who, "system:serviceaccount:")) {
			t.Errorf("gone: %+v", a)
		}
	}
	if t.Failed() {
		if run, err := shared.Binary(t.Context(), "webhook", "trace", lesson.Session, shared.ControlPlane.AuditLog()); err == nil {
			t.Log(run.Stdout)
		}
	}
}
