package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const swagger = `{"definitions": {
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
  "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
  "io.k8s.api.apps.v1.Deployment": {
    "type": "object", "properties": {"spec": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}},
    "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}]},
  "io.k8s.api.core.v1.Pod": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]}
}}`

const definition = `
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Thing}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            metadata: {type: object}
            spec:
              type: object
              properties:
                list: {type: array, items: {type: object, properties: {name: {type: string}}}}
                map: {type: object, additionalProperties: {type: object, properties: {properties: {type: string}}}}
                free: {type: object, properties: {known: {type: string}}, x-kubernetes-preserve-unknown-fields: true}
              oneOf: [{properties: {list: {}}}, {properties: {map: {}}}]
`

// written runs the command on the two, and reads one of the files that it writes.
func written(t *testing.T, name string) any {
	t.Helper()
	directory := t.TempDir()
	files := map[string]string{"swagger.json": swagger, "thing.yaml": definition}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	schemas := filepath.Join(directory, "schemas")
	if err := run(schemas, filepath.Join(directory, "swagger.json"), []string{filepath.Join(directory, "thing.yaml")}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(schemas, name))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(content))
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAKindOfKubernetesRefersToItsStrictType(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"apps/deployment-v1.json", `{"$ref": "../definitions.json#/definitions/io.k8s.api.apps.v1.Deployment"}`},
		{"v1/pod-v1.json", `{"$ref": "../definitions.json#/definitions/io.k8s.api.core.v1.Pod"}`},
	} {
		if difference := cmp.Diff(decode(t, test.want), written(t, test.file)); difference != "" {
			t.Errorf("%s (-want +got):\n%s", test.file, difference)
		}
	}
	types := written(t, "definitions.json").(map[string]any)["definitions"].(map[string]any)
	for name, want := range map[string]string{
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": `{"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false}`,
		"io.k8s.apimachinery.pkg.api.resource.Quantity":   `{"oneOf": [{"type": "string"}, {"type": "number"}]}`,
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString": `{"oneOf": [{"type": "string"}, {"type": "integer"}]}`,
	} {
		if difference := cmp.Diff(decode(t, want), types[name]); difference != "" {
			t.Errorf("%s (-want +got):\n%s", name, difference)
		}
	}
}

func TestACustomResourceIsStrictWhereItsDefinitionKeepsNothingElse(t *testing.T) {
	want := decode(t, `{"type": "object", "additionalProperties": false, "properties": {
	  "metadata": {"$ref": "../definitions.json#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
	  "spec": {"type": "object", "additionalProperties": false, "oneOf": [{"properties": {"list": {}}}, {"properties": {"map": {}}}], "properties": {
	    "list": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}}}},
	    "map": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false, "properties": {"properties": {"type": "string"}}}},
	    "free": {"type": "object", "properties": {"known": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true}
	  }}}}`)
	if difference := cmp.Diff(want, written(t, "example.com/thing-v1.json")); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
}
