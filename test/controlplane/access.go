package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// accessInterval is the pause between two questions.
const accessInterval = 20 * time.Millisecond

// AwaitAccess waits until the API server's authorizer allows what a user asks, or does not any more: a Role and its binding, once written,
// reach it by a watch.
func AwaitAccess(ctx context.Context, client kubernetes.Interface, allowed bool, user string, wanted authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: &wanted,
	}}
	pause := time.NewTicker(accessInterval)
	defer pause.Stop()
	for {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed == allowed {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s may %s %s (allowed: %t): %w", user, wanted.Verb, wanted.Resource, allowed, errors.Join(ctx.Err(), err))
		}
	}
}
