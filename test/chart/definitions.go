package chart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// definitions are the CustomResourceDefinitions of what the chart renders for operators, below the directories of their Go modules.
var definitions = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cert-manager/cert-manager": {
		"deploy/crds/cert-manager.io_certificates.yaml",
		"deploy/crds/cert-manager.io_issuers.yaml",
	},
}

// Definitions gives the CustomResourceDefinitions of what the chart renders for Prometheus' operator and cert-manager, as YAML documents. The Go
// command downloads them the first time.
func (h *Helm) Definitions(ctx context.Context) ([]byte, error) {
	var documents bytes.Buffer
	for module, files := range definitions {
		directory, err := run(exec.CommandContext(ctx, filepath.Join(h.root, "hack", "module-directory.sh"), filepath.Join(h.root, "hack", "data"), module))
		if err != nil {
			return nil, fmt.Errorf("getting the definitions of %s: %w", module, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(directory)), file))
			if err != nil {
				return nil, fmt.Errorf("reading a definition of %s: %w", module, err)
			}
			documents.WriteString("\n---\n")
			documents.Write(content)
		}
	}
	return documents.Bytes(), nil
}
