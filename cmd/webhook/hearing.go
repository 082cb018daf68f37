package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/ttlab/vmwarden/internal/config"
)

// longestSilence is for how long a replica may hear nothing of the API server. It asks for the lease every two seconds, and each of its
// decisions has less time than this.
const longestSilence = 10 * time.Second

var errNothingHeard = errors.New("the API server has not answered yet")

// hearing is a readiness check that fails where the API server does not answer this replica: it could count nothing and look nothing up,
// and whoever asks it would wait for a denial that another replica need not give. Where the API server answers nobody, nobody hears that
// no replica is ready either, and all is as before when it is back. Where what cannot be counted is to be admitted, a replica that hears
// nothing is of more use than none, and is kept once it has heard anything.
func hearing(silence func() (time.Duration, bool), uncertain config.WhenUncertain) healthz.Checker {
	return func(*http.Request) error {
		since, heard := silence()
		switch {
		case !heard:
			return errNothingHeard
		case since > longestSilence && uncertain != config.AllowWhenUncertain:
			return fmt.Errorf("the API server has answered nothing for %s", since.Truncate(time.Second))
		}
		return nil
	}
}
