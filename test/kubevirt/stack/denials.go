package stack

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ttlab/vmwarden/test/backend"
)

// ExpectDenied fails the test unless the error is a denial with just these codes.
func ExpectDenied(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	if got := backend.DenialCodes(err); !slices.Equal(got, want) || !apierrors.IsForbidden(err) {
		t.Errorf("%s: denied by %v, want %v (%v)", what, got, want, err)
	}
}
