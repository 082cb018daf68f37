package reap

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/lab"
)

// markTimeout bounds the annotation. It is written through our own webhook, which may hang; the deletion does not wait for it.
const markTimeout = 3 * time.Second

// gate is the one way to a deletion. It asks for it only after the object was judged again as it is now, and only under the
// UID that was judged.
type gate struct {
	cluster     ClusterAccess
	environment string
	itemTimeout time.Duration
	clock       clock.PassiveClock
	log         *zap.Logger
	// confirm, if set, is asked right before a deletion: its error keeps the object. What was judged may have taken seconds to mark,
	// and a database that was restarted in between has let the student extend.
	confirm func(context.Context) error
}

// judgement says why an object that was read afresh is kept; empty where nothing speaks for it.
type judgement func(fresh Object) string

// delete gets the object again, lets judge look at it, marks a virtual machine with why, and deletes. The reason is not empty
// where the object was kept. An object that is gone or going is done with; an error that is not NotFound keeps it.
func (g *gate) delete(ctx context.Context, action Action, object Object, judge judgement) (kept string, err error) {
	const replaced = "another object has its name now"
	fresh, err := g.cluster.Get(ctx, object.Kind, object.Namespace, object.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case fresh.UID != object.UID:
		return replaced, nil
	}
	if fresh.Environment != "" && fresh.Environment != g.environment {
		// Whatever a direction thinks of it: this is the last place to stop it.
		return fmt.Sprintf("it belongs to environment %q", fresh.Environment), nil
	}
	if reason := judge(fresh); reason != "" {
		return reason, nil
	}
	if fresh.Deleting != nil {
		return "", nil
	}
	if fresh.Kind == VirtualMachine {
		g.mark(ctx, action, fresh)
	}
	if g.confirm != nil {
		if err := g.confirm(ctx); err != nil {
			return "", err
		}
	}
	err = g.cluster.Delete(ctx, fresh)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsConflict(err):
		return replaced, nil
	}
	return "", err
}

// mark writes on a virtual machine why it goes. It is best effort: while all replicas of our webhook are down the API server
// refuses every update, and a machine whose time is up goes all the same.
func (g *gate) mark(ctx context.Context, action Action, object Object) {
	before, err := lab.ParseReaped(object.Reaped)
	if err == nil && before.Reason == string(action.Direction) && before.Since.Equal(action.Since) {
		// An earlier pass asked for this deletion; when it first did is what counts.
		return
	}
	value, err := lab.Reaped{Reason: string(action.Direction), Since: action.Since, DeletionAskedAt: g.clock.Now()}.Format()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, min(markTimeout, g.itemTimeout/4))
		defer cancel()
		err = g.cluster.Annotate(ctx, object, lab.ReapedAnnotation, value)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		g.log.Warn("a virtual machine could not be annotated; its deletion is asked for all the same",
			zap.String("object", object.String()), zap.Error(err))
	}
}

// still judges an object by what it was planned for: the session and environment that it carried then.
func still(planned Object) judgement {
	return func(fresh Object) string {
		switch {
		case fresh.Environment != planned.Environment:
			return fmt.Sprintf("its environment is %q now", fresh.Environment)
		case fresh.Session != planned.Session:
			return fmt.Sprintf("its session is %q now", fresh.Session)
		}
		return ""
	}
}
