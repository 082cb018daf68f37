package observe

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// labels is what the tests' contract says.
var labels = lab.Labels{Session: "ttlab.io/session", Environment: "ttlab.io/env"}

// machine is a virtual machine of an environment, with annotations as pairs of key and value.
func machine(name, environment string, annotations ...string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: kubevirtv1.GroupVersion.String(), Kind: "VirtualMachine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab-vms", Name: name, Labels: map[string]string{labels.Environment: environment}, Annotations: map[string]string{},
		},
	}
	for pair := range slices.Chunk(annotations, 2) {
		m.Annotations[pair[0]] = pair[1]
	}
	return m
}

func terminatingSince(m *metav1.PartialObjectMetadata, since time.Time) *metav1.PartialObjectMetadata {
	m.DeletionTimestamp = &metav1.Time{Time: since}
	return m
}

// reapedMachine is a machine of prod that should have been gone a minute and a half before noon, and was asked to go half a
// minute before noon.
func reapedMachine(reason string) *metav1.PartialObjectMetadata {
	return machine("lab-a", "prod", lab.ReapedAnnotation,
		`{"reason":"`+reason+`","since":"2026-11-29T11:58:30Z","deletionAskedAt":"2026-11-29T11:59:30Z"}`)
}

// watching is a watch of these machines at noon.
func watching(t *testing.T, machines ...runtime.Object) *Machines {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	contract := lab.Contract{VMNamespace: "lab-vms", Labels: labels, Environments: []string{"prod", "dev"}}
	return NewMachines(fake.NewSimpleMetadataClient(scheme, machines...), contract, clocktesting.NewFakePassiveClock(noon), zaptest.NewLogger(t))
}

// whileLeading runs the watch, and the test when its first list is in.
func whileLeading(t *testing.T, test func(machines *Machines), objects ...runtime.Object) {
	t.Helper()
	machines := watching(t, objects...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- machines.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if !cache.WaitForCacheSync(ctx.Done(), func() bool { return len(gather(t, machines)) > 0 }) {
		t.Fatal("the first list never came")
	}
	test(machines)
}

func TestMachinesThatShouldBeGoneShowByEnvironment(t *testing.T) {
	const past, ahead = "2026-11-29T11:59:59Z", "2026-11-29T12:00:01Z"
	whileLeading(t, func(machines *Machines) {
		expectValues(t, gather(t, machines), map[string]float64{
			"vmwarden_vms_past_deadline{environment=prod}":                          2,
			"vmwarden_vms_past_deadline{environment=dev}":                           0,
			"vmwarden_vms_past_deadline{environment=no configured environment}":     1,
			"vmwarden_vms_without_deadline{environment=prod}":                       0,
			"vmwarden_vms_without_deadline{environment=dev}":                        2,
			"vmwarden_vms_stuck_terminating{environment=prod}":                      1,
			"vmwarden_vms_stuck_terminating{environment=dev}":                       0,
			"vmwarden_vms_stuck_terminating{environment=no configured environment}": 0,
		})
	},
		machine("a", "prod", lab.DeadlineAnnotation, past),
		terminatingSince(machine("b", "prod", lab.DeadlineAnnotation, past), noon.Add(-lab.StuckAfter-time.Second)),
		machine("c", "prod", lab.DeadlineAnnotation, ahead),
		machine("d", "somebody's", lab.DeadlineAnnotation, past),
		machine("e", "dev"),
		terminatingSince(machine("f", "dev", lab.DeadlineAnnotation, "tomorrow"), noon.Add(-lab.StuckAfter)),
	)
}

func TestOnlyWhoLeadsTellsOfMachines(t *testing.T) {
	var watched *Machines
	whileLeading(t, func(machines *Machines) { watched = machines })
	for what, machines := range map[string]*Machines{"before": watching(t), "after": watched} {
		if got := gather(t, machines); len(got) != 0 {
			t.Errorf("%s leading: %v", what, got)
		}
	}
}

// goneSeries are the counts and sums of prod's machines that went for a reason.
func goneSeries(reason string, count, toAsked, toGone, whole float64) map[string]float64 {
	series := map[string]float64{}
	for name, sum := range map[string]float64{"expiry_to_deletion_asked": toAsked, "deletion_asked_to_gone": toGone, "expiry_to_gone": whole} {
		series["vmwarden_reaped_vm_"+name+"_seconds_count{environment=prod,reason="+reason+"}"] = count
		series["vmwarden_reaped_vm_"+name+"_seconds_sum{environment=prod,reason="+reason+"}"] = sum
	}
	return series
}

func TestItIsTimedHowAReapedMachineWent(t *testing.T) {
	whileLeading(t, func(machines *Machines) {
		expectValues(t, gather(t, machines), goneSeries("expired", 0, 0, 0, 0))
		machines.gone(reapedMachine("expired"))
		machines.gone(machine("b", "prod")) // a student ended it: nothing of the reaper's
		got := gather(t, machines)
		expectValues(t, got, goneSeries("expired", 1, 60, 30, 90))
		expectValues(t, got, goneSeries("orphan", 0, 0, 0, 0))
	})
}

func TestAMachineThatWentInAGapOfTheWatchIsCountedAndNotTimed(t *testing.T) {
	whileLeading(t, func(machines *Machines) {
		machines.gone(cache.DeletedFinalStateUnknown{Key: "lab-vms/lab-a", Obj: reapedMachine("expired")})
		got := gather(t, machines)
		expectValues(t, got, goneSeries("expired", 0, 0, 0, 0))
		expectValues(t, got, map[string]float64{"vmwarden_reaped_vms_unseen_total{environment=prod}": 1})
	})
}

func TestAMarkThatAReaperDidNotWriteSpoilsNothing(t *testing.T) {
	whileLeading(t, func(machines *Machines) {
		for _, mark := range []string{"", "soon", "{}", `{"reason":"expired","since":"2026-11-29T11:58:30Z"}`} {
			machines.gone(machine("lab-a", "prod", lab.ReapedAnnotation, mark))
		}
		expectValues(t, gather(t, machines), goneSeries("expired", 0, 0, 0, 0))
		machines.gone(reapedMachine("student-7"))
		expectValues(t, gather(t, machines), goneSeries("other", 1, 60, 30, 90))
		// Clocks that run apart.
		machines.gone(machine("lab-a", "prod", lab.ReapedAnnotation,
			`{"reason":"orphan","since":"2026-11-29T12:00:10Z","deletionAskedAt":"2026-11-29T12:00:05Z"}`))
		expectValues(t, gather(t, machines), goneSeries("orphan", 1, 0, 0, 0))
	})
}

func TestOfAMachineNothingIsKeptButWhatIsTold(t *testing.T) {
	full := reapedMachine("expired")
	full.Labels["student"] = "7"
	full.Annotations["student"] = "7"
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "backend"}}
	kept, err := watching(t).essence(full)
	if err != nil {
		t.Fatal(err)
	}
	object := kept.(*metav1.PartialObjectMetadata)
	if len(object.Labels) != 1 || len(object.Annotations) != 1 || object.ManagedFields != nil {
		t.Errorf("kept: %+v", object)
	}
}
