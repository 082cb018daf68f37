// Package backend plays the existing backend in tests and in the demo: it sends exactly what the real one sends, as its own
// ServiceAccount.
package backend

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed manifests
var files embed.FS

// The backend's manifests.
const (
	CloudInitSecret = "cloud-init-secret.yaml"
	VMContainerDisk = "vm-containerdisk.yaml"
	VMGolden        = "vm-golden.yaml"
	VMDataVolume    = "vm-datavolume.yaml"
	GroupMember     = "group-member.yaml"
	GoldenPVC       = "golden-pvc.yaml"
	LabPod          = "lab-pod.yaml"
	RBAC            = "rbac-backend.yaml"
	Sessions        = "sessions.sql"
)

// Lesson is what the backend fills into its manifests.
type Lesson struct {
	// Session is the session's id.
	Session string
	// Environment is the label's value.
	Environment string
	// Member is the number of a group's member; 0 for the lead.
	Member int
}

// Prefix is the first eight characters of the session's id, by which the backend names everything.
func (l Lesson) Prefix() string { return l.Session[:min(8, len(l.Session))] }

// VMName is what the backend calls the session's virtual machine.
func (l Lesson) VMName() string {
	if l.Member > 0 {
		return fmt.Sprintf("lab-%s-n%d", l.Prefix(), l.Member)
	}
	return "lab-" + l.Prefix()
}

// Text gives a file as it is.
func Text(file string) string {
	content, err := files.ReadFile("manifests/" + file)
	if err != nil {
		// The files are compiled in; only a wrong constant gets here.
		panic(err)
	}
	return string(content)
}

// Objects gives a manifest's objects for a lesson.
func Objects(file string, lesson Lesson) ([]*unstructured.Unstructured, error) {
	filled := os.Expand(Text(file), func(name string) string {
		switch name {
		case "SID":
			return lesson.Session
		case "SID8":
			return lesson.Prefix()
		case "ENV":
			return lesson.Environment
		case "N":
			return strconv.Itoa(lesson.Member)
		case "TOKEN":
			return "a-token-that-must-not-leak"
		}
		return "$" + name
	})
	objects, err := Decode([]byte(filled))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return objects, nil
}

// Decode reads the objects of a YAML file, numbers as the API server's clients read them.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
