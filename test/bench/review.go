package main

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ttlab/vmwarden/test/backend"
)

// reviewedSession is the session of the reviews.
const reviewedSession = "a0000000-0000-4000-8000-000000000001"

// reviewOf gives the review of a virtual machine's creation, as kube-apiserver sends it: change makes what the backend sends what a
// webhook sees of it.
func reviewOf(change func(*unstructured.Unstructured)) ([]byte, error) {
	objects, err := backend.Objects(backend.VMGolden, backend.Lesson{Session: reviewedSession, Environment: "prod"})
	if err != nil {
		return nil, err
	}
	machine := objects[0]
	// kube-apiserver notes who owns each field before it asks a webhook; to a reader these notes are half of the object.
	fields, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:labels": ownedFields(machine.GetLabels())}, "f:spec": ownedFields(machine.Object["spec"])})
	if err != nil {
		return nil, fmt.Errorf("writing the managed fields: %w", err)
	}
	created := metav1.Now()
	machine.SetCreationTimestamp(created)
	machine.SetGeneration(1)
	machine.SetManagedFields([]metav1.ManagedFieldsEntry{{
		APIVersion: "kubevirt.io/v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: fields},
		Manager: "backend", Operation: metav1.ManagedFieldsOperationUpdate, Time: &created,
	}})
	change(machine)
	content, err := machine.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing the virtual machine: %w", err)
	}
	options, err := json.Marshal(metav1.CreateOptions{TypeMeta: metav1.TypeMeta{Kind: "CreateOptions", APIVersion: "meta.k8s.io/v1"}})
	if err != nil {
		return nil, fmt.Errorf("writing the options: %w", err)
	}
	kind := metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	resource := metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "4f0f4e3c-6d0a-4a39-8f0e-0c0ffee00001", Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Name: machine.GetName(), Namespace: machine.GetNamespace(), Operation: admissionv1.Create,
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:ttlab-prod:backend", UID: "4f0f4e3c-6d0a-4a39-8f0e-0c0ffee00002",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ttlab-prod", "system:authenticated"},
			},
			Object: runtime.RawExtension{Raw: content}, DryRun: new(false), Options: runtime.RawExtension{Raw: options},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the review: %w", err)
	}
	return review, nil
}

// ownedFields notes fields as kube-apiserver does where a definition gives its lists no keys, as KubeVirt's do not.
func ownedFields(value any) map[string]any {
	owned := map[string]any{}
	switch content := value.(type) {
	case map[string]any:
		for key, inner := range content {
			owned["f:"+key] = ownedFields(inner)
		}
	case map[string]string:
		for key := range content {
			owned["f:"+key] = map[string]any{}
		}
	}
	return owned
}
