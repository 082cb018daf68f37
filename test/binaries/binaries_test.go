package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// The tests build a module of a few lines in the place of Kubernetes.

const goMod = "module example.test/fake\n\ngo 1.24\n"

const program = `package main

import "fmt"

var version = "none"

func main() { fmt.Println("Kubernetes " + version) }
`

var server = artifact{
	name: "fake-server", module: "fake", main: ".", minor: "1.34",
	linkerFlags: "-X main.version=v1.34.10", usually: "a moment",
}

// newFake is a locator for the module "fake" with the given source.
func newFake(t *testing.T, source string) (*locator, *output) {
	t.Helper()
	progress := &output{}
	l := &locator{modules: t.TempDir(), cache: filepath.Join(t.TempDir(), "cache"), progress: progress}
	directory := filepath.Join(l.modules, "fake")
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(directory, "go.mod"), goMod)
	write(t, filepath.Join(directory, "main.go"), source)
	return l, progress
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// installed is a directory with a program that somebody else put there.
func installed(t *testing.T, version string) string {
	t.Helper()
	directory := t.TempDir()
	write(t, filepath.Join(directory, server.name), "#!/bin/sh\necho Kubernetes "+version+"\n")
	return directory
}

// output is progress that may be read while it is written.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// eventually waits for what another goroutine or process brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("a minute passed, and it is not so that %s", what)
	}
}

// leftovers is what lies in the cache besides results and locks.
func leftovers(t *testing.T, l *locator) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(l.cache, "building-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestABuiltBinaryIsUsedAgainUntilSomethingThatShapesItChanges(t *testing.T) {
	l, progress := newFake(t, program)
	first, err := l.locate(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := minorVersion(t.Context(), first); err != nil || version != "1.34" {
		t.Errorf("the binary has version %q (%v): the linker flags did not reach it", version, err)
	}
	second, err := l.locate(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if second != first || strings.Count(progress.String(), "built fake-server") != 1 {
		t.Errorf("got %s and %s after %q, want one build", first, second, progress)
	}

	seen := map[string]string{first: "the first"}
	for _, change := range []struct {
		what   string
		change func(*artifact)
	}{
		{"go.mod", func(*artifact) { write(t, filepath.Join(l.modules, "fake", "go.mod"), goMod+"// changed\n") }},
		{"go.sum", func(*artifact) { write(t, filepath.Join(l.modules, "fake", "go.sum"), "") }},
		{"the source", func(*artifact) { write(t, filepath.Join(l.modules, "fake", "main.go"), program+"// changed\n") }},
		{"the linker flags", func(wanted *artifact) { wanted.linkerFlags += " -s" }},
	} {
		wanted := server
		change.change(&wanted)
		path, err := l.builtPath(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[path]; ok {
			t.Errorf("after a change of %s the build of %s would be used", change.what, other)
		}
		seen[path] = change.what
	}
}

func TestAnInstalledBinaryIsUsedOnlyIfItsVersionFits(t *testing.T) {
	for _, test := range []struct {
		name           string
		assets, path   string
		want           string
		wantComplaints []string
	}{
		{name: "assets fit", assets: installed(t, "v1.34.1"), path: installed(t, "v1.34.2"), want: "assets"},
		{name: "assets have another version", assets: installed(t, "v1.33.9"), path: installed(t, "v1.34.2"), want: "path",
			wantComplaints: []string{"(from $KUBEBUILDER_ASSETS) is not used: it has version 1.33, and 1.34 is needed"}},
		{name: "assets lack it", assets: t.TempDir(), path: installed(t, "v1.34.2"), want: "path"},
		{name: "nothing fits", assets: installed(t, "v1.3.4"), path: installed(t, "unknown"), want: "built",
			wantComplaints: []string{"it has version 1.3, and", `(from $PATH) is not used: it names no version, but "Kubernetes unknown"`}},
		{name: "nothing is installed", want: "built"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, progress := newFake(t, program)
			l.assets = test.assets
			if test.path != "" {
				t.Setenv("PATH", test.path+string(os.PathListSeparator)+os.Getenv("PATH"))
			}
			built, err := l.builtPath(t.Context(), server)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.locate(t.Context(), server)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"assets": filepath.Join(test.assets, server.name), "path": filepath.Join(test.path, server.name), "built": built,
			}[test.want]
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			for _, complaint := range test.wantComplaints {
				if !strings.Contains(progress.String(), complaint) {
					t.Errorf("progress does not say %q: %s", complaint, progress)
				}
			}
			if len(test.wantComplaints) == 0 && strings.Contains(progress.String(), "not used") {
				t.Errorf("progress complains: %s", progress)
			}
		})
	}
}

func TestOneOfManyConcurrentBuildsBuildsAndTheOthersWait(t *testing.T) {
	l, progress := newFake(t, program)
	path, err := l.builtPath(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	const builds = 4
	results := make(chan error, builds)
	for range builds {
		go func() { results <- l.build(t.Context(), server, path) }()
	}
	for range builds {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := strings.Count(progress.String(), "built fake-server"); got != 1 {
		t.Errorf("it was built %d times, want once: %s", got, progress)
	}
	if !exists(path) {
		t.Error("the binary is not there")
	}
}

func TestAWaiterSaysForWhomItWaitsAndUsesWhatTheOtherBuilt(t *testing.T) {
	l, progress := newFake(t, "not even Go")
	path, err := l.builtPath(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := acquireLock(t.Context(), filepath.Dir(path)+".lock", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- l.build(t.Context(), server, path) }()
	want := fmt.Sprintf("waiting for process %d (since ", os.Getpid())
	eventually(t, "the waiter says for whom it waits", func() bool { return strings.Contains(progress.String(), want) })
	write(t, path, "built by somebody else")
	if err := lock.release(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	if strings.Contains(progress.String(), "building fake-server from") {
		t.Errorf("the waiter built it again: %s", progress)
	}
}

func TestAWaiterCanBeCalledOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := acquireLock(t.Context(), path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := acquireLock(ctx, path, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter got %v, want that it was called off", err)
	}
	if err := lock.release(); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedBuildShowsWhyAndLeavesNothing(t *testing.T) {
	l, _ := newFake(t, "package main\n\nfunc main() { undefinedFunction() }\n")
	_, err := l.locate(t.Context(), server)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("the build ends with %v, want the compiler's own words", err)
	}
	if left := leftovers(t, l); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if path, err := l.builtPath(t.Context(), server); err != nil || exists(path) {
		t.Errorf("a failed build has a result (%v)", err)
	}
}

func TestABuildThatIsCalledOffLeavesNoHalfFile(t *testing.T) {
	// A generator that has written half of its file and goes on for ever.
	l, _ := newFake(t, "package main\n\nimport \"os\"\n\nfunc main() {\n\tos.WriteFile(os.Args[1], []byte(\"half\"), 0o644)\n\tfor {\n\t}\n}\n")
	wanted := server
	wanted.generated = true
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := l.locate(ctx, wanted)
		result <- err
	}()
	eventually(t, "half of the file is written", func() bool {
		halves, err := filepath.Glob(filepath.Join(l.cache, "building-*", "output"))
		return err == nil && len(halves) == 1
	})
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the build ends with %v, want that it was called off", err)
	}
	if left := leftovers(t, l); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if path, err := l.builtPath(t.Context(), wanted); err != nil || exists(path) {
		t.Errorf("a build that was called off has a result (%v)", err)
	}
}

func TestAGeneratedFileIsWhatTheProgramWrote(t *testing.T) {
	l, _ := newFake(t, "package main\n\nimport \"os\"\n\nfunc main() {\n\tprintln(\"a warning\")\n\tos.WriteFile(os.Args[1], []byte(\"definitions\"), 0o644)\n}\n")
	wanted := server
	wanted.generated = true
	path, err := l.locate(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "definitions" {
		t.Errorf("the file holds %q (%v)", content, err)
	}
}

func TestTheEnvironmentOfABuildDoesNotDependOnTheCallersFlags(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOOS", "plan9")
	l, _ := newFake(t, program)
	path, err := l.locate(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := minorVersion(t.Context(), path); err != nil {
		t.Errorf("the binary does not run here: %v", err)
	}
}

func TestTheModulesAreFoundFromTheDirectoryOfATest(t *testing.T) {
	l, err := newLocator(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []artifact{
		etcd, apiServer, controllerManager, scheduler, kubelet, customResourceDefinitions, kubevirtInstall, virtAPI, virtController,
	} {
		if !exists(filepath.Join(l.modules, wanted.module, "go.mod")) {
			t.Errorf("%s has no build module in %s", wanted.name, l.modules)
		}
	}
}
