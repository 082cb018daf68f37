package kubevirt

import (
	"context"
	"fmt"
	"slices"

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

func (h *Hand) play(ctx context.Context, shown *kubevirtv1.VirtualMachineInstance) error {
	instance := shown.DeepCopy()
	switch phase, launcher := instance.Status.Phase, h.launcher(instance); {
	case phase == kubevirtv1.Scheduled && launcher != nil && launcher.Status.Phase == corev1.PodRunning:
		runs(&instance.Status)
	case (phase == kubevirtv1.Scheduled || phase == kubevirtv1.Running) && launcher != nil && ended(launcher):
		enters(&instance.Status, kubevirtv1.Failed)
	case phase == kubevirtv1.Running && migrates(instance):
		migrated(&instance.Status)
	default:
		return nil
	}
	// As a whole, like the real one. A patch that merges would drop times that are null, which virt-controller then does not find.
	_, err := h.machines.KubevirtV1().VirtualMachineInstances(instance.Namespace).Update(ctx, instance, metav1.UpdateOptions{})
	return ignoreGone(err)
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

func enters(status *kubevirtv1.VirtualMachineInstanceStatus, phase kubevirtv1.VirtualMachineInstancePhase) {
	status.Phase = phase
	status.PhaseTransitionTimestamps = append(status.PhaseTransitionTimestamps, kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{
		Phase: phase, PhaseTransitionTimestamp: metav1.Now(),
	})
}

// runs also says that the instance may migrate, which the guest's disks would decide.
func runs(status *kubevirtv1.VirtualMachineInstanceStatus) {
	enters(status, kubevirtv1.Running)
	now := metav1.Now()
	status.Conditions = append(slices.DeleteFunc(status.Conditions, func(c kubevirtv1.VirtualMachineInstanceCondition) bool {
		return c.Type == kubevirtv1.VirtualMachineInstanceIsMigratable
	}), kubevirtv1.VirtualMachineInstanceCondition{
		Type: kubevirtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
	})
	status.MigrationMethod = kubevirtv1.LiveMigration
	status.SelinuxContext = "none"
}

// migrates tells whether both ends of a migration are ready for what the two virt-handlers would do now.
func migrates(instance *kubevirtv1.VirtualMachineInstance) bool {
	state := instance.Status.MigrationState
	return state != nil && !state.Completed && state.TargetNode != "" && state.TargetPod != "" && instance.Status.NodeName == state.SourceNode
}

func migrated(status *kubevirtv1.VirtualMachineInstanceStatus) {
	now := metav1.Now()
	state := status.MigrationState
	status.NodeName = state.TargetNode
	state.StartTimestamp, state.EndTimestamp, state.TargetNodeDomainReadyTimestamp = &now, &now, &now
	state.TargetNodeDomainDetected, state.Completed = true, true
	state.TargetNodeAddress = "127.0.0.1"
}
