package stack

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Codes are the codes of a denial by vmwarden, in order; nil for an answer that is none.
func Codes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var list []string
	for _, cause := range status.Status().Details.Causes {
		if !slices.Contains(list, string(cause.Type)) {
			list = append(list, string(cause.Type))
		}
	}
	return list
}

// ExpectDenied fails the test unless the error is a denial with just these codes.
func ExpectDenied(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	if got := Codes(err); !slices.Equal(got, want) || !apierrors.IsForbidden(err) {
		t.Errorf("%s: denied by %v, want %v (%v)", what, got, want, err)
	}
}
