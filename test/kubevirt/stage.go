package kubevirt

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/ttlab/vmwarden/test/controlplane"
)

// Stage plays nodes: each Pod that is scheduled there is said to run at once, and is gone as soon as its deletion is asked.
// Nothing runs, no image is looked at, no deadline is enforced, and a Pod's grace period is not waited for: for these see package
// node.
type Stage struct {
	stop      context.CancelFunc
	addresses atomic.Uint32
}

// NodeLabels are those that virt-handler puts on a node that can run virtual machines.
func NodeLabels() map[string]string {
	return map[string]string{
		"kubevirt.io/schedulable":                  "true",
		"machine-type.node.kubevirt.io/q35":        "true",
		"cpu-model.node.kubevirt.io/lab":           "true",
		"host-model-cpu.node.kubevirt.io/lab":      "true",
		"cpu-model-migration.node.kubevirt.io/lab": "true",
	}
}

// NodeAnnotations say that virt-handler is alive, for longer than any test.
func NodeAnnotations() map[string]string {
	return map[string]string{"kubevirt.io/heartbeat": "2099-01-01T00:00:00Z"}
}

// Devices are what KubeVirt's device plugins offer on each node.
var Devices = []corev1.ResourceName{"devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net"}

// PlayNodes makes nodes of these names and plays them until the Stage is closed.
func PlayNodes(ctx context.Context, plane *controlplane.ControlPlane, names ...string) (*Stage, error) {
	admin, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Stage{stop: stop}
	for _, name := range names {
		if err := createNode(ctx, admin, name); err != nil {
			s.Close()
			return nil, err
		}
		config, err := plane.UserConfig("system:node:"+name, "system:nodes")
		if err != nil {
			s.Close()
			return nil, err
		}
		kubelet, err := kubernetes.NewForConfig(config)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.play(playing, kubelet, name)
	}
	return s, nil
}

// Close ends the play. The nodes stay, and nothing happens on them any more.
func (s *Stage) Close() { s.stop() }

func createNode(ctx context.Context, admin kubernetes.Interface, name string) error {
	labels := NodeLabels()
	labels[corev1.LabelHostname], labels[corev1.LabelArchStable], labels[corev1.LabelOSStable] = name, "amd64", "linux"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: NodeAnnotations()}}
	created, err := admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %s: %w", name, err)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	for _, device := range Devices {
		capacity[device] = resource.MustParse("1000")
	}
	created.Status.Capacity, created.Status.Allocatable = capacity, capacity
	created.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Played", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if _, err := admin.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("making node %s ready: %w", name, err)
	}
	// The API server taints every new node, and a controller that is not running here takes the taint away.
	if _, err := admin.CoreV1().Nodes().Patch(ctx, name, mergePatch, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("making node %s schedulable: %w", name, err)
	}
	return nil
}

func (s *Stage) play(ctx context.Context, kubelet kubernetes.Interface, node string) {
	factory := informers.NewSharedInformerFactoryWithOptions(kubelet, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	onEach(ctx, factory.Core().V1().Pods().Informer(), func(ctx context.Context, pod *corev1.Pod) error {
		return s.playPod(ctx, kubelet, pod)
	})
	factory.Start(ctx.Done())
}

func (s *Stage) playPod(ctx context.Context, kubelet kubernetes.Interface, pod *corev1.Pod) error {
	pods := kubelet.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		return ignoreGone(pods.Delete(ctx, pod.Name, options))
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		running := pod.DeepCopy()
		running.Status = s.running(pod)
		_, err := pods.UpdateStatus(ctx, running, metav1.UpdateOptions{})
		return ignoreGone(err)
	}
	return nil
}

func (s *Stage) running(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	number := s.addresses.Add(1)
	status := *pod.Status.DeepCopy()
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.PodIP = fmt.Sprintf("10.99.%d.%d", number>>8&0xff, number&0xff)
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, gate := range pod.Spec.ReadinessGates {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, ImageID: imageID(container), Ready: true, State: runs})
	}
	for _, container := range pod.Spec.InitContainers {
		state := over
		if container.RestartPolicy != nil {
			state = runs
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, ImageID: imageID(container), Ready: true, State: state})
	}
	return status
}

// imageID is the image by a digest: a migration goes on with the very image that it began with.
func imageID(container corev1.Container) string {
	repository, _, _ := strings.Cut(container.Image, ":")
	return repository + "@sha256:" + strings.Repeat("0", 64)
}

// retryInterval is the pause before something is tried again that the API server did not take.
const retryInterval = 200 * time.Millisecond

// onEach calls play for every state of every object that the informer shows, also a second time for one that was not taken. What
// play does about one object is done in order, and does not hold up the others.
func onEach[T metav1.Object](ctx context.Context, informer cache.SharedIndexInformer, play func(context.Context, T) error) {
	react := func(shown any) {
		object, ok := shown.(T)
		if !ok {
			return
		}
		go func() {
			for play(ctx, object) != nil {
				select {
				case <-ctx.Done():
					return
				case <-time.After(retryInterval):
				}
				// What is newer is played when it is shown.
				latest, found, err := informer.GetStore().Get(object)
				if current, ok := latest.(T); err != nil || !found || !ok || current.GetResourceVersion() != object.GetResourceVersion() {
					return
				}
			}
		}()
	}
	// It fails only for an informer that has stopped.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    react,
		UpdateFunc: func(_, shown any) { react(shown) },
	})
}

// ignoreGone forgives what befell an object that is gone or has changed: then there is a newer state to look at.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
