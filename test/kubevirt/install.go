package kubevirt

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ttlab/vmwarden/test/backend"
)

// apiHost is virt-api's name inside a cluster.
const apiHost = "virt-api.kubevirt.svc"

// readinessInterval is the pause between two looks at what the API server has made of an object.
const readinessInterval = 50 * time.Millisecond

// installation is what virt-operator installs, in two parts: what the servers need to start, and what makes the API server ask them.
type installation struct{ before, after []*unstructured.Unstructured }

func readInstallation(path string) (*installation, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := backend.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	i := &installation{}
	for _, object := range objects {
		switch object.GetKind() {
		case "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			i.after = append(i.after, object)
		default:
			i.before = append(i.before, object)
		}
	}
	return i, nil
}

// prepare makes what virt-api and virt-controller find at their start: accounts, rights, the authority of their certificates,
// virt-api's Service and the resource of kind KubeVirt, in the state in which virt-operator leaves it.
func (k *KubeVirt) prepare(ctx context.Context, installation *installation, options Options) error {
	objects := []*unstructured.Unstructured{
		object("v1", "Namespace", "", Namespace, nil),
		object("v1", "ConfigMap", Namespace, "kubevirt-ca", map[string]any{"data": map[string]any{"ca-bundle": string(k.plane.CA())}}),
		// virt-api is no Pod: the API server goes where the Service's name leads.
		object("v1", "Service", Namespace, "virt-api", map[string]any{"spec": map[string]any{
			"type": "ExternalName", "externalName": "localhost",
			"ports": []any{map[string]any{"port": int64(k.apiPort), "protocol": "TCP"}},
		}}),
	}
	objects = append(objects, installation.before...)
	for _, object := range objects {
		if err := k.create(ctx, object); err != nil {
			return err
		}
	}
	gates := make([]any, len(options.FeatureGates))
	for i, gate := range options.FeatureGates {
		gates[i] = gate
	}
	kubevirt := object("kubevirt.io/v1", "KubeVirt", Namespace, "kubevirt", map[string]any{"spec": map[string]any{
		"configuration": map[string]any{"developerConfiguration": map[string]any{"featureGates": gates}},
	}})
	if err := k.create(ctx, kubevirt); err != nil {
		return err
	}
	resource := k.objects.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}).Namespace(Namespace)
	stored, err := resource.Get(ctx, "kubevirt", metav1.GetOptions{})
	if err != nil {
		return err
	}
	stored.Object["status"] = map[string]any{"phase": "Deployed", "defaultArchitecture": "amd64"}
	if _, err := resource.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("saying that KubeVirt is deployed: %w", err)
	}
	return nil
}

// publish makes the API server ask virt-api, and waits until it does.
func (k *KubeVirt) publish(ctx context.Context, installation *installation) error {
	for _, object := range installation.after {
		var err error
		if object.GetKind() == "APIService" {
			err = k.redirectService(object)
		} else {
			err = k.redirectWebhooks(object)
		}
		if err != nil {
			return err
		}
		if err := k.create(ctx, object); err != nil {
			return err
		}
	}
	for _, object := range installation.after {
		if object.GetKind() == "APIService" {
			if err := k.awaitService(ctx, object.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *KubeVirt) authority() string { return base64.StdEncoding.EncodeToString(k.plane.CA()) }

func (k *KubeVirt) redirectService(service *unstructured.Unstructured) error {
	if err := unstructured.SetNestedField(service.Object, k.authority(), "spec", "caBundle"); err != nil {
		return err
	}
	return unstructured.SetNestedField(service.Object, int64(k.apiPort), "spec", "service", "port")
}

// redirectWebhooks replaces virt-api's Service by its address, on the same path.
func (k *KubeVirt) redirectWebhooks(configuration *unstructured.Unstructured) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("%s holds a %T", configuration.GetName(), webhook)
		}
		path, _, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		fields["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", k.apiPort, path), "caBundle": k.authority()}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

func (k *KubeVirt) awaitService(ctx context.Context, name string) error {
	resource := k.objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	pause := time.NewTicker(readinessInterval)
	defer pause.Stop()
	for {
		service, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err == nil && conditionIsTrue(service, "Available") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API %s: %w (%v)", name, context.Cause(ctx), service)
		case <-pause.C:
		}
	}
}

func conditionIsTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == kind {
			return fields["status"] == "True"
		}
	}
	return false
}

func (k *KubeVirt) create(ctx context.Context, object *unstructured.Unstructured) error {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	var err error
	if namespace := object.GetNamespace(); namespace != "" {
		_, err = k.objects.Resource(plural).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = k.objects.Resource(plural).Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(o.Object, content)
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
