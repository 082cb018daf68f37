package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/ttlab/vmwarden/test/chart"
)

// TestTheAPIServerTakesAllThatTheChartCanRender applies what the chart renders with everything switched on, as `kubectl apply --server-side --dry-run=server
// --validate=strict` does, to an API server that knows the kinds of Prometheus' operator and of cert-manager too.
func TestTheAPIServerTakesAllThatTheChartCanRender(t *testing.T) {
	apply := dryApplier(t)
	kinds := map[string]bool{}
	for _, source := range []string{"CertManager", "SelfManaged"} {
		for _, object := range rendered(t, "webhook.certificate.source="+source) {
			kinds[object.GetKind()] = true
			if err := apply(object); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
			wrong := object.DeepCopy()
			wrong.SetName("wrong-" + object.GetName())
			setNested(t, wrong, "x", "surname")
			if err := apply(wrong); err == nil || !strings.Contains(err.Error(), "surname") {
				t.Errorf("a %s with a field that it does not have: %v", object.GetKind(), err)
			}
		}
	}
	for _, kind := range []string{"Deployment", "CronJob", "ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"} {
		if !kinds[kind] {
			t.Errorf("no %s was rendered", kind)
		}
	}
}

// rendered is what the chart renders with everything switched on, and one value set.
func rendered(t *testing.T, value string) []*unstructured.Unstructured {
	t.Helper()
	helm, err := chart.NewHelm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(filepath.Join(helm.Dir(), "ci", "everything-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Of another name than the lab's own release, whose registration has been given an address.
	rendering, err := helm.Template(t.Context(), chart.Release{
		Name: "another", Namespace: "vmwarden", Values: []string{string(values)}, Set: []string{value},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Objects(rendering)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// dryApplier applies an object as an admin, strictly, and leaves nothing.
func dryApplier(t *testing.T) func(*unstructured.Unstructured) error {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return func(object *unstructured.Unstructured) error {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		content, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(t.Context(), object.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{
			FieldManager: "test", Force: new(true), DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		return err
	}
}
