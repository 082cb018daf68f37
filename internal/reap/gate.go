package reap

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// gate is the one way to a deletion. It asks for it only after the object was judged again as it is now, and only under the
// UID that was judged.
type gate struct {
	cluster     ClusterAccess
	environment string
}

// fate is what became of an object at the gate.
type fate struct {
	// deleted is true where the deletion was asked for, or the object is gone or going already.
	deleted bool
	// kept says why the object is kept; empty where it is not.
	kept string
}

// deleteListed deletes an object as it was listed. It is for objects whose right to exist was judged again by other means:
// their session's row is locked.
func (g *gate) deleteListed(ctx context.Context, object Object) (fate, error) {
	if object.Environment != "" && object.Environment != g.environment {
		// No direction plans this. If one ever did, this is the last place to stop it.
		return fate{}, fmt.Errorf("refused to delete %s: it belongs to environment %q", object, object.Environment)
	}
	err := g.cluster.Delete(ctx, object)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return fate{deleted: true}, nil
	case apierrors.IsConflict(err):
		return fate{kept: "another object has its name now"}, nil
	}
	return fate{}, err
}

// deleteFresh gets the object again, lets judge look at it, and deletes it if judge has no reason to keep it.
func (g *gate) deleteFresh(ctx context.Context, object Object, judge func(Object) string) (fate, error) {
	fresh, err := g.cluster.Get(ctx, object.Kind, object.Namespace, object.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fate{deleted: true}, nil
	case err != nil:
		return fate{}, err
	case fresh.UID != object.UID:
		return fate{kept: "another object has its name now"}, nil
	case fresh.Deleting != nil:
		return fate{deleted: true}, nil
	}
	if reason := judge(fresh); reason != "" {
		return fate{kept: reason}, nil
	}
	return g.deleteListed(ctx, fresh)
}
