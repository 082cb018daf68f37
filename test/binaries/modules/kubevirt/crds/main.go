// crds writes the CustomResourceDefinitions that KubeVirt's operator installs, as YAML documents, to the file named by its argument.
//
// They are not among the operator's release manifests: virt-operator makes them at run time, with this package.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/yaml"
)

var definitions = []func() (*apiextensionsv1.CustomResourceDefinition, error){
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewPresetCrd,
	components.NewReplicaSetCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewKubeVirtCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewVirtualMachineSnapshotCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineBackupCrd,
	components.NewVirtualMachineBackupTrackerCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
	components.NewMigrationPolicyCrd,
	components.NewVirtualMachineCloneCrd,
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crds FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	var documents bytes.Buffer
	for _, definition := range definitions {
		document, err := encode(definition)
		if err != nil {
			return err
		}
		documents.WriteString("---\n")
		documents.Write(document)
	}
	return os.WriteFile(path, documents.Bytes(), 0o644)
}

func encode(definition func() (*apiextensionsv1.CustomResourceDefinition, error)) ([]byte, error) {
	resource, err := definition()
	if err != nil {
		return nil, fmt.Errorf("asking KubeVirt for a definition: %w", err)
	}
	resource.APIVersion, resource.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	document, err := json.Marshal(resource)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", resource.Name, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", resource.Name, err)
	}
	// The status is the API server's to write.
	delete(fields, "status")
	if document, err = yaml.Marshal(fields); err != nil {
		return nil, fmt.Errorf("writing %s: %w", resource.Name, err)
	}
	return document, nil
}
