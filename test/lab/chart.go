package lab

import (
	"context"
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/chart"
)

// releaseName is the chart's release, and so the name of what it installs.
const releaseName = "vmwarden"

// releases are those that an installation with a reaper beside each backend is made of: accounts, rights, status and registration are
// the chart's. No Pod runs here, and the replicas and passes that the tests start run outside, as the chart's ServiceAccounts.
func releases() ([]chart.Release, error) {
	values, err := chartValues()
	if err != nil {
		return nil, err
	}
	all := []chart.Release{{Name: releaseName, Namespace: ownNamespace, Values: []string{values}, Set: []string{
		"webhook.replicas=0",
		// Some tests have a quota of their own; most want the webhook's caps to be what they run into.
		"resourceQuota.enabled=false",
	}}}
	for _, environment := range Environments {
		all = append(all, chart.Release{Name: releaseName, Namespace: "ttlab-" + environment, Values: []string{values}, Set: []string{
			"webhook.enabled=false", "reaper.suspend=true",
		}})
	}
	return all, nil
}

// chartValues are the lab's configuration as the chart takes it.
func chartValues() (string, error) {
	var configuration map[string]any
	if err := yaml.Unmarshal([]byte(Config), &configuration); err != nil {
		return "", fmt.Errorf("reading the lab's configuration: %w", err)
	}
	environments := configuration["environments"]
	for _, elsewhere := range []string{"apiVersion", "kind", "environments"} {
		delete(configuration, elsewhere)
	}
	values, err := yaml.Marshal(map[string]any{"environments": environments, "config": configuration})
	if err != nil {
		return "", fmt.Errorf("writing the chart's values: %w", err)
	}
	return string(values), nil
}

// renderChart renders all releases.
func renderChart(ctx context.Context) ([]*unstructured.Unstructured, error) {
	helm, err := chart.NewHelm(ctx)
	if err != nil {
		return nil, err
	}
	all, err := releases()
	if err != nil {
		return nil, err
	}
	var rendered []*unstructured.Unstructured
	for _, release := range all {
		rendering, err := helm.Template(ctx, release)
		if err != nil {
			return nil, err
		}
		objects, err := chart.Objects(rendering)
		if err != nil {
			return nil, err
		}
		rendered = append(rendered, objects...)
	}
	return rendered, nil
}

// applyChart creates what the chart renders, but for the registration: the API server is to ask nobody before somebody answers.
func (l *Lab) applyChart(ctx context.Context, as *backend.Backend) error {
	for _, object := range l.rendered {
		if isRegistration(object) {
			continue
		}
		if _, err := as.CreateObject(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			return fmt.Errorf("applying the chart: %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func isRegistration(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == "admissionregistration.k8s.io"
}

// registration is the chart's, but that the API server finds the replicas by an address in place of a Service.
func (l *Lab) registration(address string, ca []byte) ([]*unstructured.Unstructured, error) {
	var registrations []*unstructured.Unstructured
	for _, object := range l.rendered {
		if !isRegistration(object) {
			continue
		}
		object = object.DeepCopy()
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("reading the registration: %w", err)
		}
		for _, webhook := range webhooks {
			entry, ok := webhook.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("an entry of %s is no object", object.GetKind())
			}
			path, _, err := unstructured.NestedString(entry, "clientConfig", "service", "path")
			if err != nil {
				return nil, fmt.Errorf("reading the registration: %w", err)
			}
			entry["clientConfig"] = map[string]any{"url": "https://" + address + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
		}
		object.Object["webhooks"] = webhooks
		registrations = append(registrations, object)
	}
	return registrations, nil
}

// RegisterOther registers other handlers as the chart registers ours, by the same rules and conditions, for one namespace alone. They
// answer below a path of that address.
func (l *Lab) RegisterOther(ctx context.Context, name, namespace, address string) error {
	registrations, err := l.registration(address, l.ControlPlane.CA())
	if err != nil {
		return err
	}
	for _, registration := range registrations {
		registration.SetName(name)
		webhooks, _, err := unstructured.NestedSlice(registration.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading the registration: %w", err)
		}
		for _, webhook := range webhooks {
			entry, ok := webhook.(map[string]any)
			if !ok {
				return fmt.Errorf("an entry of %s is no object", registration.GetKind())
			}
			entry["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
		}
		registration.Object["webhooks"] = webhooks
		if _, err := l.AdminBackend.CreateObject(ctx, registration, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("registering %s: %w", name, err)
		}
	}
	return nil
}
