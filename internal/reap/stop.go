package reap

import (
	"context"
	"time"
)

// BeyondCancel gives a context for what was begun and is to be finished although the pass was told to stop: it is bound by limit
// and by the deadline of ctx, and not by its cancellation.
func BeyondCancel(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	deadline, limited := ctx.Deadline()
	if !limited {
		return finishing, cancel
	}
	bounded, cancelBounded := context.WithDeadline(finishing, deadline)
	return bounded, func() {
		cancelBounded()
		cancel()
	}
}
