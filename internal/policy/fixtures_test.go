package policy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// fixtures are KubeVirt's own virtual machines with every field filled, one for each release that its API module knows.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "kubevirt.io/api").Output()
	if err != nil {
		t.Fatalf("finding KubeVirt's API module: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(output)), "apitesting", "testdata", "*", "kubevirt.io.v1.VirtualMachine.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("KubeVirt's fixtures: %v, %v; want those of two releases at least", files, err)
	}
	contents := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[filepath.Base(filepath.Dir(file))] = content
	}
	return contents
}

// without removes what vmwarden adds, so that what is left can be compared with what was sent.
func without(o object) object {
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		metadata := map[string]any(o)
		for _, key := range path {
			metadata, _ = metadata[key].(map[string]any)
		}
		if annotations, found := metadata["annotations"].(map[string]any); found {
			delete(annotations, "vmwarden.io/deadline")
			delete(annotations, "vmwarden.io/created-by")
		}
		if labels, found := metadata["labels"].(map[string]any); found {
			delete(labels, "ttlab.io/env")
		}
	}
	return o
}

func TestKubeVirtsOwnFixturesGoThroughWithNothingLost(t *testing.T) {
	for release, content := range fixtures(t) {
		t.Run(release, func(t *testing.T) {
			request := create(prodBackend, nil)
			request.Object = runtime.RawExtension{Raw: content}
			after, patched := mutate(t, request)
			if !patched {
				t.Fatal("the fixture was not stamped")
			}
			var sent object
			if err := json.Unmarshal(content, (*map[string]any)(&sent)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(without(sent), without(after)); diff != "" {
				t.Errorf("beside the stamps (-sent +after):\n%s", diff)
			}
		})
	}
}
