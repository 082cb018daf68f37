package certificate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionregistration "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
)

// registrations are the webhook configurations through which the API server finds us, all of one name.
type registrations struct {
	client admissionregistration.AdmissionregistrationV1Interface
	name   string
}

// entry is one webhook of a configuration, with what it trusts.
type entry struct {
	name     string
	caBundle []byte
}

// registration is one configuration as the API server holds it now.
type registration struct {
	kind    string
	entries []entry
	patch   func(ctx context.Context, patch []byte) error
}

// read asks the API server itself: what it trusts is not to be taken from a cache.
func (r registrations) read(ctx context.Context) ([]registration, error) {
	mutating, errMutating := r.client.MutatingWebhookConfigurations().Get(ctx, r.name, metav1.GetOptions{})
	validating, errValidating := r.client.ValidatingWebhookConfigurations().Get(ctx, r.name, metav1.GetOptions{})
	if err := errors.Join(errMutating, errValidating); err != nil {
		return nil, fmt.Errorf("reading the webhook configurations: %w", err)
	}
	first := registration{kind: "MutatingWebhookConfiguration", patch: func(ctx context.Context, patch []byte) error {
		_, err := r.client.MutatingWebhookConfigurations().Patch(ctx, r.name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	}}
	for _, webhook := range mutating.Webhooks {
		first.entries = append(first.entries, entry{webhook.Name, webhook.ClientConfig.CABundle})
	}
	second := registration{kind: "ValidatingWebhookConfiguration", patch: func(ctx context.Context, patch []byte) error {
		_, err := r.client.ValidatingWebhookConfigurations().Patch(ctx, r.name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	}}
	for _, webhook := range validating.Webhooks {
		second.entries = append(second.entries, entry{webhook.Name, webhook.ClientConfig.CABundle})
	}
	return []registration{first, second}, nil
}

// trusted are the authorities that any entry trusts.
func trusted(registrations []registration, now time.Time) [][]byte {
	var all [][]byte
	for _, registration := range registrations {
		for _, entry := range registration.entries {
			all = addOnce(all, parseBundle(entry.caBundle, now)...)
		}
	}
	return all
}

// trust makes every entry trust what it ought to, and tells whether anything had to be written. Only the bundle is patched: a
// field that this build does not know stays.
func (r registration) trust(ctx context.Context, ours material, now time.Time) (written bool, err error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	for i, entry := range r.entries {
		wanted := bytes.Join(wantedTrust(ours, parseBundle(entry.caBundle, now)), nil)
		if bytes.Equal(wanted, entry.caBundle) {
			continue
		}
		path := fmt.Sprintf("/webhooks/%d", i)
		// The test fails the patch where somebody reordered the entries meanwhile.
		patch = append(patch, operation{"test", path + "/name", entry.name}, operation{"add", path + "/clientConfig/caBundle", wanted})
	}
	if len(patch) == 0 {
		return false, nil
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("writing the patch of the caBundle: %w", err)
	}
	if err := r.patch(ctx, content); err != nil {
		return false, fmt.Errorf("writing the caBundle of the %s: %w", r.kind, err)
	}
	return true, nil
}
