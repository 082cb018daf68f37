package kubevirt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"
	kubevirtclient "kubevirt.io/client-go/kubevirt"

	"github.com/ttlab/vmwarden/test/controlplane"
)

const mergePatch = types.MergePatchType

// Hand plays virt-handler under its own account: it says that an instance runs once its launcher Pod does, that it failed once that
// Pod has ended, and that a migration succeeded. There is no guest: nothing boots, nothing can be asked of an agent, and no memory
// is copied.
type Hand struct {
	stop     context.CancelFunc
	machines *kubevirtclient.Clientset
	pods     cache.SharedIndexInformer
}

// PlayHandler plays virt-handler for all nodes until the Hand is closed. KubeVirt has to be installed.
func PlayHandler(ctx context.Context, plane *controlplane.ControlPlane) (*Hand, error) {
	config, err := plane.ServiceAccountConfig(ctx, Namespace, "kubevirt-handler")
	if err != nil {
		return nil, err
	}
	h := &Hand{}
	if h.machines, err = kubevirtclient.NewForConfig(config); err != nil {
		return nil, err
	}
	// A virt-handler sees its node's Pods through the container runtime, not through the API server.
	admin, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	instances := h.instances(playing)
	factory := informers.NewSharedInformerFactoryWithOptions(admin, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = kubevirtv1.AppLabel + "=virt-launcher"
	}))
	h.pods = factory.Core().V1().Pods().Informer()
	onEach(playing, instances, h.play)
	// A Pod that changes is news of its instance.
	onEach(playing, h.pods, func(ctx context.Context, pod *corev1.Pod) error {
		key := pod.Namespace + "/" + pod.Annotations[kubevirtv1.DomainAnnotation]
		shown, found, err := instances.GetStore().GetByKey(key)
		if instance, ok := shown.(*kubevirtv1.VirtualMachineInstance); err == nil && found && ok {
			return h.play(ctx, instance)
		}
		return err
	})
	factory.Start(playing.Done())
	go instances.RunWithContext(playing)
	if !cache.WaitForCacheSync(ctx.Done(), instances.HasSynced, h.pods.HasSynced) {
		stop()
		return nil, fmt.Errorf("waiting for the instances and their Pods: %w", context.Cause(ctx))
	}
	return h, nil
}

// Close ends the play: what happens to instances and Pods from then on, nobody reports.
func (h *Hand) Close() { h.stop() }

func (h *Hand) instances(ctx context.Context) cache.SharedIndexInformer {
	client := h.machines.KubevirtV1().VirtualMachineInstances(metav1.NamespaceAll)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, &kubevirtv1.VirtualMachineInstance{}, 0, cache.Indexers{})
}

func (h *Hand) play(ctx context.Context, instance *kubevirtv1.VirtualMachineInstance) error {
	var status map[string]any
	switch phase, launcher := instance.Status.Phase, h.launcher(instance); {
	case phase == kubevirtv1.Scheduled && launcher != nil && launcher.Status.Phase == corev1.PodRunning:
		status = h.runs(instance)
	case (phase == kubevirtv1.Scheduled || phase == kubevirtv1.Running) && launcher != nil && ended(launcher):
		status = h.enters(instance, kubevirtv1.Failed)
	case phase == kubevirtv1.Running && migrates(instance):
		status = migrated(instance)
	default:
		return nil
	}
	return h.report(ctx, instance, status)
}

// launcher is the Pod that the instance runs in now; of two, in a migration, the one on the instance's node.
func (h *Hand) launcher(instance *kubevirtv1.VirtualMachineInstance) *corev1.Pod {
	for _, shown := range h.pods.GetStore().List() {
		pod, ok := shown.(*corev1.Pod)
		if ok && pod.Spec.NodeName == instance.Status.NodeName &&
			labels.SelectorFromSet(labels.Set{kubevirtv1.CreatedByLabel: string(instance.UID)}).Matches(labels.Set(pod.Labels)) {
			return pod
		}
	}
	return nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (h *Hand) enters(instance *kubevirtv1.VirtualMachineInstance, phase kubevirtv1.VirtualMachineInstancePhase) map[string]any {
	return map[string]any{
		"phase": phase,
		"phaseTransitionTimestamps": append(slices.Clone(instance.Status.PhaseTransitionTimestamps), kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{
			Phase: phase, PhaseTransitionTimestamp: metav1.Now(),
		}),
	}
}

// runs also says that the instance may migrate, which the guest's disks would decide.
func (h *Hand) runs(instance *kubevirtv1.VirtualMachineInstance) map[string]any {
	status := h.enters(instance, kubevirtv1.Running)
	conditions := slices.DeleteFunc(slices.Clone(instance.Status.Conditions), func(c kubevirtv1.VirtualMachineInstanceCondition) bool {
		return c.Type == kubevirtv1.VirtualMachineInstanceIsMigratable
	})
	now := metav1.Now()
	// Both times, as in every condition that KubeVirt writes: virt-controller's patches test the old ones by what it would write.
	status["conditions"] = append(conditions, kubevirtv1.VirtualMachineInstanceCondition{
		Type: kubevirtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
	})
	status["migrationMethod"] = kubevirtv1.LiveMigration
	return status
}

// migrates tells whether both ends of a migration are ready for what the two virt-handlers would do now.
func migrates(instance *kubevirtv1.VirtualMachineInstance) bool {
	state := instance.Status.MigrationState
	return state != nil && !state.Completed && state.TargetNode != "" && state.TargetPod != "" && instance.Status.NodeName == state.SourceNode
}

func migrated(instance *kubevirtv1.VirtualMachineInstance) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	target := instance.Status.MigrationState.TargetNode
	return map[string]any{
		"nodeName": target,
		"migrationState": map[string]any{
			"startTimestamp": now, "endTimestamp": now, "completed": true, "targetNodeDomainReadyTimestamp": now,
			"targetNodeDomainDetected": true, "targetNodeAddress": "127.0.0.1",
		},
	}
}

func (h *Hand) report(ctx context.Context, instance *kubevirtv1.VirtualMachineInstance, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		// A newer state is another one to judge.
		"metadata": map[string]any{"resourceVersion": instance.ResourceVersion},
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = h.machines.KubevirtV1().VirtualMachineInstances(instance.Namespace).Patch(ctx, instance.Name, mergePatch, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}
