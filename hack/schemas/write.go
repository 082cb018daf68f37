package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// definitions is the file that the schemas of Kubernetes' kinds refer to: most have most types in common.
	definitions = "definitions.json"
	// objectMeta is the type of every object's metadata, which a CustomResourceDefinition calls an object and leaves at that.
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// run writes the schemas anew: of those that are there nothing is left.
func run(directory, swagger string, customResourceDefinitions []string) error {
	if err := os.RemoveAll(directory); err != nil {
		return fmt.Errorf("removing earlier schemas: %w", err)
	}
	if err := writeKubernetes(directory, swagger); err != nil {
		return fmt.Errorf("reading %s: %w", swagger, err)
	}
	for _, file := range customResourceDefinitions {
		if err := writeCustom(directory, file); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	return nil
}

func writeKubernetes(directory, swagger string) error {
	content, err := os.ReadFile(swagger)
	if err != nil {
		return err
	}
	var release struct {
		Definitions map[string]schema `json:"definitions"`
	}
	if err := json.Unmarshal(content, &release); err != nil {
		return err
	}
	if release.Definitions[objectMeta] == nil {
		return fmt.Errorf("it describes no %s", objectMeta)
	}
	for name, definition := range release.Definitions {
		definition.adapt(name)
		// What every kind has, such as DeleteOptions, is of no group, and nobody writes it to a file.
		if kinds := definition.kinds(); len(kinds) == 1 {
			if err := write(directory, kinds[0], reference(name)); err != nil {
				return err
			}
		}
	}
	return writeJSON(filepath.Join(directory, definitions), map[string]any{"definitions": release.Definitions})
}

func writeCustom(directory, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var definition struct {
		Kind string
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return err
	}
	if definition.Kind != "CustomResourceDefinition" {
		return fmt.Errorf("it is a %s, want a CustomResourceDefinition", definition.Kind)
	}
	for _, version := range definition.Spec.Versions {
		described := version.Schema.OpenAPIV3Schema
		properties := described.properties()
		if properties == nil {
			return fmt.Errorf("version %s has no properties", version.Name)
		}
		described.adapt("")
		properties["metadata"] = map[string]any(reference(objectMeta))
		if err := write(directory, kind{definition.Spec.Group, version.Name, definition.Spec.Names.Kind}, described); err != nil {
			return err
		}
	}
	return nil
}

// reference is what a schema in a directory below says in place of repeating a type.
func reference(name string) schema {
	return schema{"$ref": "../" + definitions + "#/definitions/" + name}
}

// write puts a schema where kubeconform looks for it by location.
func write(directory string, of kind, described schema) error {
	group := of.group
	if group == "" {
		group = of.version
	}
	return writeJSON(filepath.Join(directory, group, strings.ToLower(of.kind)+"-"+of.version+".json"), described)
}

func writeJSON(path string, content any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, encoded, 0o600)
}
