// Package binaries finds the programs of a real Kubernetes control plane, and KubeVirt's real CustomResourceDefinitions, or builds
// them from their Go modules: no download other than that of Go modules, and the versions stand in three go.mod files.
package binaries

import (
	"context"
	"fmt"
	"io"
)

// Set is where everything that a control plane needs was found.
type Set struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	// CustomResourceDefinitions is a file with KubeVirt's definitions as YAML documents.
	CustomResourceDefinitions string
}

// KubeVirt is where KubeVirt's own servers were found.
type KubeVirt struct {
	API        string
	Controller string
	// Install is a file with what KubeVirt's operator installs for the two, as YAML documents.
	Install string
}

// Node is where the programs of a node, and the scheduler that gives it Pods, were found.
type Node struct {
	Kubelet   string
	Scheduler string
}

// order is an artifact and where its path goes.
type order struct {
	artifact artifact
	path     *string
}

// Locate finds or builds the whole set. Each program is looked for in $KUBEBUILDER_ASSETS, among those built earlier, and in
// $PATH; the first of a fitting version is taken. A first build takes many minutes and says on progress what it is doing;
// ending the context ends it and leaves nothing half done.
func Locate(ctx context.Context, progress io.Writer) (*Set, error) {
	set := &Set{}
	return set, locate(ctx, progress, []order{
		{etcd, &set.Etcd},
		{apiServer, &set.APIServer},
		{controllerManager, &set.ControllerManager},
		{customResourceDefinitions, &set.CustomResourceDefinitions},
	})
}

// LocateKubeVirt does for KubeVirt's servers what Locate does for the control plane.
func LocateKubeVirt(ctx context.Context, progress io.Writer) (*KubeVirt, error) {
	set := &KubeVirt{}
	return set, locate(ctx, progress, []order{
		{kubevirtInstall, &set.Install},
		{virtAPI, &set.API},
		{virtController, &set.Controller},
	})
}

// LocateScheduler does it for the scheduler alone: a node that is played needs no kubelet.
func LocateScheduler(ctx context.Context, progress io.Writer) (string, error) {
	path := ""
	err := locate(ctx, progress, []order{{scheduler, &path}})
	return path, err
}

// LocateKubectl does it for kubectl, which a measurement compares with.
func LocateKubectl(ctx context.Context, progress io.Writer) (string, error) {
	path := ""
	err := locate(ctx, progress, []order{{kubectl, &path}})
	return path, err
}

// LocateNode does it for a node. What a kubelet needs besides, containerd and runc, comes with the system.
func LocateNode(ctx context.Context, progress io.Writer) (*Node, error) {
	set := &Node{}
	return set, locate(ctx, progress, []order{{scheduler, &set.Scheduler}, {kubelet, &set.Kubelet}})
}

func locate(ctx context.Context, progress io.Writer, list []order) error {
	locator, err := newLocator(ctx, progress)
	if err != nil {
		return err
	}
	for _, item := range list {
		if *item.path, err = locator.locate(ctx, item.artifact); err != nil {
			return fmt.Errorf("getting %s: %w", item.artifact.name, err)
		}
	}
	return nil
}
