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

// Locate finds or builds the whole set. Each program is looked for in $KUBEBUILDER_ASSETS, among those built earlier, and in
// $PATH; the first of a fitting version is taken. A first build takes many minutes and says on progress what it is doing;
// ending the context ends it and leaves nothing half done.
func Locate(ctx context.Context, progress io.Writer) (*Set, error) {
	locator, err := newLocator(ctx, progress)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for _, wanted := range []struct {
		artifact artifact
		path     *string
	}{
		{etcd, &set.Etcd},
		{apiServer, &set.APIServer},
		{controllerManager, &set.ControllerManager},
		{customResourceDefinitions, &set.CustomResourceDefinitions},
	} {
		if *wanted.path, err = locator.locate(ctx, wanted.artifact); err != nil {
			return nil, fmt.Errorf("getting %s: %w", wanted.artifact.name, err)
		}
	}
	return set, nil
}
