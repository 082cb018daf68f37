package main

// schema is a JSON schema as OpenAPI writes it.
type schema map[string]any

// kind is a kind of a group and version.
type kind struct{ group, version, kind string }

// kinds are those that Kubernetes' description says the type is.
func (s schema) kinds() []kind {
	var kinds []kind
	list, _ := s["x-kubernetes-group-version-kind"].([]any)
	for _, entry := range list {
		names, _ := entry.(map[string]any)
		group, _ := names["group"].(string)
		version, _ := names["version"].(string)
		name, _ := names["kind"].(string)
		kinds = append(kinds, kind{group, version, name})
	}
	return kinds
}

func (s schema) properties() map[string]any {
	properties, _ := s["properties"].(map[string]any)
	return properties
}

// adapt makes the schema strict, and lets it say what an API server takes where OpenAPI cannot. The name is that of Kubernetes' type.
func (s schema) adapt(name string) {
	switch {
	case name == "io.k8s.apimachinery.pkg.api.resource.Quantity":
		s.oneOf("string", "number")
	case s["format"] == "int-or-string":
		s.oneOf("string", "integer")
	}
	if properties := s.properties(); properties != nil {
		_, open := s["additionalProperties"]
		if preserved, _ := s["x-kubernetes-preserve-unknown-fields"].(bool); !open && !preserved {
			s["additionalProperties"] = false
		}
		for _, property := range properties {
			adapt(property)
		}
	}
	// Not what stands in allOf, anyOf, oneOf and not: there a CustomResourceDefinition names some properties of many.
	adapt(s["items"])
	adapt(s["additionalProperties"])
}

func adapt(value any) {
	if object, isSchema := value.(map[string]any); isSchema {
		schema(object).adapt("")
	}
}

func (s schema) oneOf(types ...string) {
	delete(s, "type")
	delete(s, "format")
	var alternatives []any
	for _, name := range types {
		alternatives = append(alternatives, map[string]any{"type": name})
	}
	s["oneOf"] = alternatives
}
