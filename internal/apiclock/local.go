package apiclock

import "time"

// local is this machine's clock. It has a file of its own so that a test can build a binary whose clock stands still.
func local() time.Time { return time.Now() }
