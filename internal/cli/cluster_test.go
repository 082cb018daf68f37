package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereNoAPIServerIsFoundItIsSaidHowToNameOne(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for kubeconfig, want := range map[string]string{
		"":       "no API server is named: name a kubeconfig file by --kubeconfig or KUBECONFIG, or run in a Pod",
		"none":   "--kubeconfig none: no such file or directory",
		empty:    "names no API server",
		"../cli": "--kubeconfig ../cli: ",
	} {
		if _, err := ClusterConfig(kubeconfig, "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--kubeconfig %q: %v, want %q", kubeconfig, err, want)
		}
	}
}
