// install writes what KubeVirt's operator installs for virt-api and virt-controller, as YAML documents, to the file named by its
// argument: accounts and rights, the priority class, the webhook configurations and the aggregated APIs. Where virt-api
// answers is as in a cluster: by its Service, in KubeVirt's own namespace.
//
// Like the definitions, they are in no file of a release: virt-operator makes them at run time, with these packages.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
	"sigs.k8s.io/yaml"
)

const namespace = "kubevirt"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: install FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func objects() []runtime.Object {
	all := slices.Concat(
		rbac.GetAllApiServer(namespace), rbac.GetAllController(namespace, false), rbac.GetAllHandler(namespace), rbac.GetAllCluster(),
		[]runtime.Object{
			components.NewKubeVirtPriorityClassCR(),
			components.NewVirtAPIMutatingWebhookConfiguration(namespace),
			components.NewVirtLauncherPodMutatingWebhookConfiguration(namespace),
			components.NewVirtAPIValidatingWebhookConfiguration(namespace),
		},
	)
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		all = append(all, service)
	}
	return all
}

func write(path string) error {
	var documents bytes.Buffer
	for _, object := range objects() {
		document, err := encode(object)
		if err != nil {
			return fmt.Errorf("encoding a %T: %w", object, err)
		}
		documents.WriteString("---\n")
		documents.Write(document)
	}
	return os.WriteFile(path, documents.Bytes(), 0o644)
}

func encode(object runtime.Object) ([]byte, error) {
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, err
	}
	// The status is the API server's to write.
	delete(fields, "status")
	return yaml.Marshal(fields)
}
