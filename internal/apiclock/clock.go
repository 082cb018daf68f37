// Package apiclock tells the time by kube-apiserver's clock. Reservations are dated by one replica and judged by another, and a deadline
// is stamped on one machine and judged on a second: were each to go by its own clock, one that is wrong would let a ninth virtual machine
// in, or delete a student's. The API server is what all of them have in common.
package apiclock

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// resolution is that of the header Date (RFC 9110, section 5.6.7): what it says is up to so much in the past.
const resolution = time.Second

// Clock is this machine's clock, set right by what the API server's answers say. Until the first answer it is this machine's alone. It is
// safe for concurrent use. Timers and pauses are the machine's own: a wrong clock measures them no worse than a right one.
type Clock struct {
	clock.RealClock

	mutex sync.RWMutex
	// ahead is by how much the API server's clock is before ours.
	ahead time.Duration
	// heard is when the API server answered last, by our own clock; zero before it ever did.
	heard time.Time
}

// Now is the time by the API server's clock.
func (c *Clock) Now() time.Time { return local().Add(c.Ahead()) }

// Since is how long ago a moment of this clock was. It is never negative, also where the clock was set back in between: an API server that is
// behind the other may have answered last, and a sum of durations that shrinks is read as one that began anew.
func (c *Clock) Since(t time.Time) time.Duration { return max(0, c.Now().Sub(t)) }

// Ahead is by how much the API server's clock is before this machine's.
func (c *Clock) Ahead() time.Duration {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.ahead
}

// Silence is for how long the API server has answered nothing; false: it never has.
func (c *Clock) Silence() (silence time.Duration, heard bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.RealClock.Since(c.heard), !c.heard.IsZero()
}

func (c *Clock) hear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	// Of this one only how much later it is later on counts, which a clock that is set meanwhile does not change.
	c.heard = c.RealClock.Now()
}

// Listen makes a transport to the API server whose answers set the clock right.
func (c *Clock) Listen(next http.RoundTripper) http.RoundTripper {
	return transport{clock: c, next: next}
}

// learn corrects the clock by an answer that the API server dated in between two moments of ours. That bounds the difference from both
// sides; within the bounds the correction stays as it is, so that clocks which agree are left alone, and durations with them.
func (c *Clock) learn(asked, dated, answered time.Time) {
	least, most := dated.Sub(answered), dated.Add(resolution).Sub(asked)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ahead = min(max(c.ahead, least), most)
}

// Of makes a clock that learns from every answer to the clients that are made from config afterwards.
func Of(config *rest.Config) *Clock {
	c := &Clock{}
	config.Wrap(c.Listen)
	return c
}
