package kubelet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"

	vmwarden "github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/kubevirt/worker"
	"github.com/ttlab/vmwarden/test/lab"
)

// untilDeadline is long enough for all launcher Pods of a test to start before, also on a machine that is busy.
const untilDeadline = 45 * time.Second

// strategies are KubeVirt's for a machine that is to run, in the order of the sessions' numbers.
var strategies = []kubevirtv1.VirtualMachineRunStrategy{
	kubevirtv1.RunStrategyAlways, kubevirtv1.RunStrategyRerunOnFailure, kubevirtv1.RunStrategyOnce, kubevirtv1.RunStrategyManual,
}

func session(n int) backend.Lesson {
	return backend.Lesson{Session: fmt.Sprintf("%08x-0000-4000-8000-%012d", 0xd0000000+n, n), Environment: "prod"}
}

// open opens a session as its backend does, with a small machine, changed.
func open(t *testing.T, lesson backend.Lesson, changes ...func(*unstructured.Unstructured)) {
	t.Helper()
	as := shared.Backends[lesson.Environment]
	if _, err := as.Create(t.Context(), backend.CloudInitSecret, lesson); err != nil {
		t.Fatal(err)
	}
	objects, err := backend.Objects(backend.VMContainerDisk, lesson)
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Shrink(objects[0]); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(objects[0])
	}
	if _, err := as.CreateObject(t.Context(), objects[0], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func withStrategy(strategy kubevirtv1.VirtualMachineRunStrategy) func(*unstructured.Unstructured) {
	return func(machine *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(machine.Object, string(strategy), "spec", "runStrategy"); err != nil {
			panic(err)
		}
	}
}

func withDeadline(deadline time.Time) func(*unstructured.Unstructured) {
	return func(machine *unstructured.Unstructured) {
		machine.SetAnnotations(map[string]string{vmwarden.DeadlineAnnotation: vmwarden.FormatDeadline(deadline)})
	}
}

// limitMemory counts what Pods request, as the platform's quota does, and gives what is counted.
func limitMemory(t *testing.T) (used func(ctx context.Context) (int64, error)) {
	t.Helper()
	quotas := shared.Clients.CoreV1().ResourceQuotas(lab.VMNamespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "memory"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("48Gi")}},
	}
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quotas.Delete(stack.After(t), quota.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	used = func(ctx context.Context) (int64, error) {
		found, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		memory, counted := found.Status.Used[corev1.ResourceRequestsMemory]
		if !counted {
			return 0, fmt.Errorf("the quota has not counted yet")
		}
		return memory.Value(), nil
	}
	shared.Await(t, "the quota counts", func(ctx context.Context) error {
		_, err := used(ctx)
		return err
	})
	return used
}

// With the database never asked, no pass run, and from the start of the machines on no webhook either.
func TestTheKubeletEndsEveryMachineAtItsDeadlineWithoutUs(t *testing.T) {
	shared.Clean(t)
	used := limitMemory(t)
	deadline := time.Now().Add(untilDeadline)
	for n, strategy := range strategies {
		open(t, session(n), withStrategy(strategy), withDeadline(deadline))
		if strategy == kubevirtv1.RunStrategyManual {
			start(t, session(n))
		}
	}
	for n := range strategies {
		shared.AwaitRunning(t, session(n).VMName())
	}
	if memory, err := used(t.Context()); err != nil || memory == 0 {
		t.Errorf("while they run they request %d bytes of memory (%v)", memory, err)
	}
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	back := func(ctx context.Context) {
		if err := shared.Webhook.Run(ctx, lab.Config, 1); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { back(stack.After(t)) })

	ended := seeEnd(t)
	for n, strategy := range strategies {
		if end := ended[session(n).VMName()]; end.Before(deadline.Add(-time.Second)) {
			t.Errorf("%s: its launcher ended at %s, before the deadline %s", strategy, end, deadline)
		}
	}
	shared.Await(t, "no memory is requested any more", func(ctx context.Context) error {
		memory, err := used(ctx)
		if err == nil && memory > 0 {
			err = fmt.Errorf("%d bytes are", memory)
		}
		return err
	})
	expectNoneRuns(t)
	t.Logf("ended after the deadline by: %v", sinceDeadline(ended, deadline))

	// Nobody can make an instance while nobody of ours answers. What virt-controller makes of it once we do is an object alone.
	back(t.Context())
	start(t, session(3))
	for n, strategy := range strategies {
		expectStay(t, session(n).VMName(), strategy)
	}
	expectNoneRuns(t)

	// The pass needs no database for what is past its deadline.
	run, err := shared.ReapjobWith(t.Context(), "prod", "postgres://nobody@127.0.0.1:1/none", lab.Config, "run")
	if err != nil || run.Status != 1 {
		t.Errorf("the pass without a database ended with %d (%v):\n%s", run.Status, err, run.Stdout)
	}
	for n := range strategies {
		shared.AwaitVMGone(t, session(n).VMName())
	}
}

func start(t *testing.T, lesson backend.Lesson) {
	t.Helper()
	shared.Await(t, lesson.VMName()+" is told to start", func(ctx context.Context) error {
		return shared.Machines.KubevirtV1().VirtualMachines(lab.VMNamespace).Start(ctx, lesson.VMName(), &kubevirtv1.StartOptions{})
	})
}

// seeEnd waits until the kubelet has ended the launcher Pod of every machine by its limit, and tells when. The Pod of one whose
// instance KubeVirt replaces goes soon after, so it is watched and not looked for.
func seeEnd(t *testing.T) map[string]time.Time {
	t.Helper()
	watching, err := shared.Clients.CoreV1().Pods(lab.VMNamespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: kubevirtv1.AppLabel + "=virt-launcher"})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	ended := map[string]time.Time{}
	limit := time.NewTimer(untilDeadline + stack.Patience)
	defer limit.Stop()
	for len(ended) < len(strategies) {
		select {
		case event := <-watching.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Status.Phase != corev1.PodFailed {
				continue
			}
			name := pod.Annotations[kubevirtv1.DomainAnnotation]
			if _, known := ended[name]; known {
				continue
			}
			if pod.Status.Reason != "DeadlineExceeded" {
				t.Errorf("%s ended by %q, want DeadlineExceeded", pod.Name, pod.Status.Reason)
			}
			ended[name] = time.Now()
		case <-limit.C:
			t.Fatalf("only these were ended: %v", ended)
		}
	}
	return ended
}

func sinceDeadline(ended map[string]time.Time, deadline time.Time) []time.Duration {
	var times []time.Duration
	for _, end := range ended {
		times = append(times, end.Sub(deadline).Round(10*time.Millisecond))
	}
	return times
}

// expectStay checks what is left of a machine past its deadline, by its strategy, for as long as no pass takes it away.
func expectStay(t *testing.T, name string, strategy kubevirtv1.VirtualMachineRunStrategy) {
	t.Helper()
	if strategy == kubevirtv1.RunStrategyOnce {
		shared.Await(t, "the instance of a machine that runs once stays as it ended", func(ctx context.Context) error {
			instance, err := shared.Instance(ctx, name)
			if err == nil && instance.Status.Phase != kubevirtv1.Failed {
				err = fmt.Errorf("it is %s", instance.Status.Phase)
			}
			return err
		})
		return
	}
	shared.Await(t, fmt.Sprintf("%s: the next launcher Pod is refused", strategy), func(ctx context.Context) error {
		instance, err := shared.Instance(ctx, name)
		if err != nil {
			return err
		}
		for _, condition := range instance.Status.Conditions {
			if condition.Type == kubevirtv1.VirtualMachineInstanceSynchronized && condition.Reason == "FailedCreate" &&
				strings.Contains(condition.Message, "DeadlinePassed") {
				return nil
			}
		}
		return fmt.Errorf("the instance is %s: %v", instance.Status.Phase, instance.Status.Conditions)
	})
}

// expectNoneRuns checks that of the machines nothing is left that could run.
func expectNoneRuns(t *testing.T) {
	t.Helper()
	for n := range strategies {
		pods, err := shared.Launchers(t.Context(), session(n).VMName())
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodFailed {
				t.Errorf("%s is %s", pod.Name, pod.Status.Phase)
			}
		}
	}
}

func TestAPassEndsAMachineAndItsProcesses(t *testing.T) {
	shared.Clean(t)
	lesson := session(10)
	open(t, lesson)
	shared.AwaitRunning(t, lesson.VMName())
	shared.Insert(t, lesson, -time.Second)
	shared.Pass(t, "prod", 0)
	shared.AwaitVMGone(t, lesson.VMName())
	shared.AwaitNothingLeft(t)
	if status := shared.StatusOf(t, lesson); status != "expired" {
		t.Errorf("the session is %s, want expired", status)
	}
}
