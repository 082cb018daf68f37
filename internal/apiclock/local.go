package apiclock

import (
	"time"

	"k8s.io/utils/clock"
)

// local is this machine's clock. It has a file of its own so that a test can build a binary whose clock stands still.
func local() time.Time { return clock.RealClock{}.Now() }
