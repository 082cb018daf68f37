package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/process"
)

func (n *Node) startKubelet(ctx context.Context, path string, labels map[string]string) error {
	config, err := n.plane.UserConfig("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	if err := n.plane.WriteKubeconfig(n.path("kubelet.kubeconfig"), config); err != nil {
		return err
	}
	if err := n.plane.ServingCertificate(n.Dir(), nodeAddress, Name); err != nil {
		return err
	}
	if err := os.WriteFile(n.path("ca.crt"), n.plane.CA(), 0o600); err != nil {
		return err
	}
	pairs := []string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	n.arguments = []string{
		// Into the namespaces of containerd.
		fmt.Sprintf("--mount=/proc/%d/ns/mnt", n.containerd.PID()), fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", n.containerd.PID()),
		path,
		"--config=" + n.path("kubelet.yaml"),
		"--kubeconfig=" + n.path("kubelet.kubeconfig"),
		"--root-dir=" + n.path("kubelet"),
		"--cert-dir=" + n.path("kubelet/pki"),
		"--hostname-override=" + Name,
		"--node-ip=" + nodeAddress,
		"--node-labels=" + strings.Join(pairs, ","),
	}
	return n.StartKubelet(ctx)
}

// StartKubelet starts the kubelet, also again after StopKubelet, and waits until the node is ready for Pods.
func (n *Node) StartKubelet(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(n.plane.AdminConfig())
	if err != nil {
		return err
	}
	n.kubelet, err = n.group.Start(ctx, process.Spec{Name: "kubelet", Path: "nsenter", Args: n.arguments})
	if err != nil {
		return err
	}
	return n.kubelet.AwaitReady(ctx, func(ctx context.Context) error { return makeReady(ctx, clients) })
}

// StopKubelet ends the kubelet as a crash would. Containers run on.
func (n *Node) StopKubelet() error { return n.kubelet.Stop(0) }

// makeReady succeeds when the node is ready, and takes away the taint of one that is not, which a lifecycle controller would do.
func makeReady(ctx context.Context, clients kubernetes.Interface) error {
	found, err := clients.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
		_, err := clients.CoreV1().Nodes().Patch(ctx, Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		return err
	}
	return errors.New("the node does not say whether it is ready")
}

// Offer makes the node offer resources that a device plugin would, and waits until the scheduler may count on them.
func (n *Node) Offer(ctx context.Context, resources corev1.ResourceList) error {
	clients, err := kubernetes.NewForConfig(n.plane.AdminConfig())
	if err != nil {
		return err
	}
	return n.kubelet.AwaitReady(ctx, func(ctx context.Context) error {
		found, err := clients.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		missing := false
		for name, quantity := range resources {
			if offered, ok := found.Status.Allocatable[name]; !ok || offered.Cmp(quantity) != 0 {
				missing = true
			}
			found.Status.Capacity[name] = quantity
			found.Status.Allocatable[name] = quantity
		}
		if !missing {
			return nil
		}
		if _, err := clients.CoreV1().Nodes().UpdateStatus(ctx, found, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
			return err
		}
		return errors.New("the node does not offer them yet")
	})
}

// Devices is a number of each of the named resources.
func Devices(number int64, names ...corev1.ResourceName) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range names {
		list[name] = *resource.NewQuantity(number, resource.DecimalSI)
	}
	return list
}
