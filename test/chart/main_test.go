package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ttlab/vmwarden/internal/config"
)

// helm is what all tests render with.
var helm *Helm

func TestMain(m *testing.M) {
	var err error
	if helm, err = NewHelm(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newcomer is all that somebody has to fill in.
const newcomer = `
environments:
  - name: prod
    backends: [{namespace: ttlab-prod, name: backend}]
  - name: dev
    backends: [{namespace: ttlab-dev, name: backend}, {namespace: ttlab-dev, name: worker}]
    cap: 2
`

// split gives the values of an installation in which each environment runs its own reaper, beside its backend.
func split(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(helm.Dir(), "ci", "split-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func release(values ...string) Release {
	return Release{Name: "vmwarden", Namespace: "vmwarden", Values: values}
}

func render(t *testing.T, release Release) []*unstructured.Unstructured {
	t.Helper()
	rendering, err := helm.Template(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(rendering)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// find gives the one object of a kind and name, decoded strictly: a field that the kind does not have is a fault.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	found := new(T)
	count := 0
	for _, object := range objects {
		if object.GetKind() != kind || object.GetName() != name {
			continue
		}
		count++
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, found, true); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
	}
	if count != 1 {
		t.Fatalf("%d objects are a %s %s, want one", count, kind, name)
	}
	return found
}

func names(objects []*unstructured.Unstructured, kind string) []string {
	var found []string
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object.GetNamespace()+"/"+object.GetName())
		}
	}
	return found
}

// configured reads the configuration file that is rendered, as the binaries do.
func configured(t *testing.T, objects []*unstructured.Unstructured) *config.WardenConfig {
	t.Helper()
	for _, object := range objects {
		if content, found, _ := unstructured.NestedString(object.Object, "data", "config.yaml"); found {
			parsed, err := config.Parse([]byte(content))
			if err != nil {
				t.Fatalf("the rendered configuration: %v\n%s", err, content)
			}
			return parsed
		}
	}
	t.Fatal("no configuration is rendered")
	return nil
}
