package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
)

// definitionsInterval is the pause between two looks at whether new resources are served.
const definitionsInterval = 50 * time.Millisecond

// installDefinitions creates the CustomResourceDefinitions of a YAML file, and those of more, and waits until discovery shows their
// resources.
func (c *ControlPlane) installDefinitions(ctx context.Context, path string, more []byte) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	definitions, err := readDefinitions(content)
	if err != nil {
		return fmt.Errorf("reading KubeVirt's definitions from %s: %w", path, err)
	}
	others, err := readDefinitions(more)
	if err != nil {
		return fmt.Errorf("reading further definitions: %w", err)
	}
	definitions = append(definitions, others...)
	client, err := apiextensions.NewForConfig(c.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	creations, creationContext := errgroup.WithContext(ctx)
	for _, definition := range definitions {
		creations.Go(func() error {
			_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(creationContext, definition, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("creating the definition %s: %w", definition.Name, err)
			}
			return nil
		})
	}
	if err := creations.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	return awaitResources(ctx, client.Discovery(), resourcesOf(definitions))
}

func readDefinitions(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		switch err := decoder.Decode(definition); {
		case errors.Is(err, io.EOF):
			return definitions, nil
		case err != nil:
			return nil, err
		case definition.Name != "":
			definitions = append(definitions, definition)
		}
	}
}

func resourcesOf(definitions []*apiextensionsv1.CustomResourceDefinition) sets.Set[schema.GroupVersionResource] {
	resources := sets.New[schema.GroupVersionResource]()
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			if version.Served {
				resources.Insert(schema.GroupVersionResource{
					Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural,
				})
			}
		}
	}
	return resources
}

// awaitResources waits for discovery, which is where the controller manager learns of resources, and which lags behind the
// condition Established.
func awaitResources(ctx context.Context, client discovery.DiscoveryInterface, wanted sets.Set[schema.GroupVersionResource]) error {
	pause := time.NewTicker(definitionsInterval)
	defer pause.Stop()
	for {
		missing := wanted.Clone()
		_, lists, err := client.ServerGroupsAndResources()
		for _, list := range lists {
			version, parseError := schema.ParseGroupVersion(list.GroupVersion)
			if parseError != nil {
				return fmt.Errorf("reading discovery: %w", parseError)
			}
			for _, resource := range list.APIResources {
				missing.Delete(version.WithResource(resource.Name))
			}
		}
		if err == nil && missing.Len() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d of %d resources to be served: %w", missing.Len(), wanted.Len(), errors.Join(context.Cause(ctx), err))
		case <-pause.C:
		}
	}
}
