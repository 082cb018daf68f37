package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// capacity is the number of places in the VM namespace.
const capacity = 8

// session is a test's nth lesson in production. The first eight characters of its id, by which the backend names its objects,
// differ from session to session.
func session(n int) backend.Lesson {
	return backend.Lesson{Session: fmt.Sprintf("%08x-0000-4000-8000-%012d", 0xa0000000+n, n), Environment: "prod"}
}

// open opens a session as its backend does.
func open(t testing.TB, lesson backend.Lesson, manifest string) {
	t.Helper()
	if _, err := shared.Backends[lesson.Environment].Open(t.Context(), lesson.Session, manifest); err != nil {
		t.Fatalf("opening session %s: %v", lesson.Session, err)
	}
}

// end deletes a session's lead as its backend does.
func end(t testing.TB, lesson backend.Lesson) {
	t.Helper()
	if err := shared.Backends[lesson.Environment].Machines(lab.VMNamespace).Delete(t.Context(), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting %s: %v", lesson.VMName(), err)
	}
}

// fill opens as many sessions as there are places, and gives them.
func fill(t *testing.T) []backend.Lesson {
	t.Helper()
	lessons := make([]backend.Lesson, capacity)
	for i := range lessons {
		lessons[i] = session(100 + i)
		open(t, lessons[i], backend.VMContainerDisk)
	}
	for _, lesson := range lessons {
		shared.AwaitRunning(t, lesson.VMName())
	}
	return lessons
}

// member is one virtual machine of a group, with all that the backend sends with it.
func member(t *testing.T, lesson backend.Lesson, number int) []*unstructured.Unstructured {
	t.Helper()
	lesson.Member = number
	objects, err := backend.Objects(backend.GroupMember, lesson)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
