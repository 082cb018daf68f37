// Package chart renders and installs vmwarden's chart, by the real Helm.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// kubeVersion is what a rendering without a cluster is for.
const kubeVersion = "1.34.0"

// Release is an installation of the chart, or what would be one.
type Release struct {
	Name, Namespace string
	// Values are YAML documents, each laid over those before it.
	Values []string
	// Set are single values, as Helm's --set takes them.
	Set []string
}

// Helm runs Helm, built from its module at the version that hack/tools pins.
type Helm struct {
	binary, root string
	// Kubeconfig names the cluster; rendering needs none.
	Kubeconfig string
}

// NewHelm finds Helm. The Go command builds it the first time.
func NewHelm(ctx context.Context) (*Helm, error) {
	output, err := run(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return nil, fmt.Errorf("finding the module's root: %w", err)
	}
	root := strings.TrimSpace(string(output))
	output, err = run(exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join(root, "hack", "tools", "helm", "go.mod"), "-n", "helm"))
	if err != nil {
		return nil, fmt.Errorf("building Helm: %w", err)
	}
	return &Helm{binary: strings.TrimSpace(string(output)), root: root}, nil
}

// Root is where the module is.
func (h *Helm) Root() string { return h.root }

// Dir is where the chart is.
func (h *Helm) Dir() string { return filepath.Join(h.root, "charts", "vmwarden") }

// Template renders the chart. An error holds what Helm said.
func (h *Helm) Template(ctx context.Context, release Release) ([]byte, error) {
	return h.release(ctx, release, "template", release.Name, h.Dir(), "--kube-version", kubeVersion)
}

// Install installs a release, or upgrades the one that is there.
func (h *Helm) Install(ctx context.Context, release Release, more ...string) ([]byte, error) {
	return h.release(ctx, release, append([]string{"upgrade", "--install", release.Name, h.Dir(), "--kubeconfig", h.Kubeconfig}, more...)...)
}

// Uninstall removes a release.
func (h *Helm) Uninstall(ctx context.Context, release Release) ([]byte, error) {
	return h.Run(ctx, "uninstall", release.Name, "--namespace", release.Namespace, "--kubeconfig", h.Kubeconfig, "--wait")
}

// Run runs any command of Helm.
func (h *Helm) Run(ctx context.Context, arguments ...string) ([]byte, error) {
	return run(exec.CommandContext(ctx, h.binary, arguments...))
}

func (h *Helm) release(ctx context.Context, release Release, arguments ...string) (output []byte, err error) {
	directory, err := os.MkdirTemp("", "vmwarden-values")
	if err != nil {
		return nil, fmt.Errorf("making a directory for values: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	arguments = append(arguments, "--namespace", release.Namespace)
	for i, values := range release.Values {
		file := filepath.Join(directory, strconv.Itoa(i)+".yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			return nil, fmt.Errorf("writing values: %w", err)
		}
		arguments = append(arguments, "--values", file)
	}
	for _, value := range release.Set {
		arguments = append(arguments, "--set", value)
	}
	return h.Run(ctx, arguments...)
}

func run(command *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// Objects are the objects of a rendering, in its order.
func Objects(rendering []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendering), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading what was rendered: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
