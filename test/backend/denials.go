package backend

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DenialCodes are the codes of a denial by vmwarden, in order; nil for an answer that is none.
func DenialCodes(err error) []string {
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
