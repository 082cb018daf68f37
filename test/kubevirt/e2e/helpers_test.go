package e2e

import (
	"fmt"
	"testing"

	"github.com/ttlab/vmwarden/test/backend"
)

// session is a test's nth lesson in production. The first eight characters of its id, by which the backend names its objects,
// differ from session to session.
func session(n int) backend.Lesson {
	return backend.Lesson{Session: fmt.Sprintf("%08x-0000-4000-8000-%012d", 0xa0000000+n, n), Environment: "prod"}
}

// open opens a session as its backend does.
func open(t *testing.T, lesson backend.Lesson, manifest string) {
	t.Helper()
	if _, err := shared.Backends[lesson.Environment].Open(t.Context(), lesson.Session, manifest); err != nil {
		t.Fatalf("opening session %s: %v", lesson.Session, err)
	}
}
