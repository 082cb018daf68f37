package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

const (
	// burstReplicas share the burst.
	burstReplicas = 3
	// places is the cap of the lab's configuration.
	places = 8
)

// measureBurst sends many creates at once through three replicas, and counts who is let in. One more than there are places is an error: the
// cap is exact or it is nothing.
func measureBurst(ctx context.Context, s sizes, r *report) error {
	return withStage(ctx, burstReplicas, func(st *stage) error {
		if err := st.openNamespace(ctx, bare.namespace); err != nil {
			return err
		}
		var undisturbed, slowest, middle times
		var fewest, undecided = s.burst, 0
		for i := range s.bursts {
			alone, err := st.burst(ctx, bare.namespace, s.burst, i)
			if err != nil {
				return err
			}
			answered, err := st.burst(ctx, lab.VMNamespace, s.burst, i)
			if err != nil {
				return err
			}
			if answered.admitted > places {
				return fmt.Errorf("burst %d: %d of %d creates were admitted, there are %d places", i, answered.admitted, s.burst, places)
			}
			fewest, undecided = min(fewest, answered.admitted), undecided+answered.undecided
			undisturbed, slowest, middle = append(undisturbed, alone.took.at(100)), append(slowest, answered.took.at(100)), append(middle, answered.took.median())
		}
		r.note(fmt.Sprintf("burst of %d creates without webhook: all answered after", s.burst), "%.2f s (median of %d bursts)", undisturbed.median().Seconds(), s.bursts)
		what := fmt.Sprintf("burst of %d creates at %d places, %d replicas", s.burst, places, burstReplicas)
		r.atLeast(what+": admitted, never more", float64(fewest), places, "")
		r.note(what+": half of them answered after", "%.2f s (median of the bursts)", middle.median().Seconds())
		r.note(what+": refused without a decision", "%d of %d", undecided, s.burst*s.bursts)
		r.atMost(what+": all of them answered after (worst burst)", slowest.at(100).Seconds(), 2, "s")
		return nil
	})
}

// answers are those to a burst.
type answers struct {
	took                         times
	admitted, refused, undecided int
}

// burst creates as many virtual machines at once, half of them by each environment, and takes away those that came to be.
func (s *stage) burst(ctx context.Context, namespace string, size, number int) (answers, error) {
	asked := make([]*unstructured.Unstructured, size)
	for i := range asked {
		var err error
		if asked[i], err = objectOf(backend.VMContainerDisk, namespace, creator(namespace, i), number*size+i+1); err != nil {
			return answers{}, err
		}
	}
	all := answers{took: make(times, size)}
	errs := make([]error, size)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range asked {
		wait.Go(func() {
			<-start
			started := time.Now()
			_, errs[i] = s.Backends[creator(namespace, i)].CreateObject(ctx, asked[i], metav1.CreateOptions{})
			all.took[i] = time.Since(started)
		})
	}
	close(start)
	wait.Wait()
	for i, err := range errs {
		switch codes := backend.DenialCodes(err); {
		case err == nil:
			all.admitted++
		case slices.Equal(codes, []string{"CapVMs"}), slices.Equal(codes, []string{"CapReserved"}):
			all.refused++
		case slices.Equal(codes, []string{"Undecided"}), slices.Equal(codes, []string{"CapUnknown"}), apierrors.IsInternalError(err):
			// Nobody could decide in time, or, as the API server tells it by an internal error, nobody was reached: the balancer may lose a review.
			all.undecided++
		default:
			return answers{}, fmt.Errorf("create %d of a burst, answered after %s: %w", i, all.took[i], err)
		}
	}
	return all, s.clear(ctx, machines, namespace)
}

// creator is the environment whose backend sends a create of a burst. In the namespace without a guard only production's may.
func creator(namespace string, i int) string {
	if namespace == bare.namespace {
		return "prod"
	}
	return lab.Environments[i%len(lab.Environments)]
}
