// Package worker adds a node with a real kubelet to a lab with KubeVirt.
package worker

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ttlab/vmwarden/test/kubevirt"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/node"
)

// diskImage is the one that the backend's manifests name.
const diskImage = "registry.lab.internal/vm/ubuntu:24.04"

// Add adds a node with a real kubelet on which launcher Pods run. What runs in them is played: programs that wait until they
// are told to end stand for the launcher, its guest and the disk. The caller stops the node, before the Stack.
func Add(ctx context.Context, s *stack.Stack, options node.Options) (*node.Node, error) {
	options.Labels = kubevirt.NodeLabels()
	worker, err := node.Start(ctx, s.ControlPlane, options)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, s, worker); err != nil {
		return nil, errors.Join(err, worker.Stop())
	}
	return worker, nil
}

func prepare(ctx context.Context, s *stack.Stack, worker *node.Node) error {
	users := map[string]string{"/etc/passwd": "root:x:0:0::/:/box\nqemu:x:107:107::/:/box\n"}
	err := worker.Import(ctx,
		node.Image{Name: kubevirt.LauncherImage, Binary: worker.Box(), Files: users, Paths: []string{
			"/usr/bin/virt-launcher-monitor", "/usr/bin/container-disk", "/usr/bin/virt-tail", "/usr/bin/cp",
		}},
		node.Image{Name: diskImage, Binary: worker.Box(), Files: map[string]string{"/disk/disk.img": "no disk"}})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": kubevirt.NodeAnnotations()}})
	if err != nil {
		return err
	}
	if _, err := s.Clients.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	return worker.Offer(ctx, node.Devices(1000, kubevirt.Devices...))
}

// Shrink makes a backend's virtual machine one that fits several times into the machine that the tests run on.
func Shrink(machine *unstructured.Unstructured) error {
	domain := []string{"spec", "template", "spec", "domain"}
	return errors.Join(
		unstructured.SetNestedMap(machine.Object, map[string]any{"cpu": "20m", "memory": "32Mi"}, append(domain, "resources", "requests")...),
		unstructured.SetNestedMap(machine.Object, map[string]any{"guest": "32Mi"}, append(domain, "memory")...),
		unstructured.SetNestedMap(machine.Object, map[string]any{"cores": int64(1)}, append(domain, "cpu")...),
	)
}
