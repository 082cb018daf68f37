package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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
		var slowest, middle, undisturbed times
		if err := st.openNamespace(ctx, bare.namespace); err != nil {
			return err
		}
		for i := range s.bursts {
			alone, _, err := st.burst(ctx, bare.namespace, s.burst, i)
			if err != nil {
				return err
			}
			took, denials, err := st.burst(ctx, lab.VMNamespace, s.burst, i)
			if err != nil {
				return err
			}
			if admitted := s.burst - denials; admitted != places {
				return fmt.Errorf("burst %d: %d of %d creates were admitted, there are %d places", i, admitted, s.burst, places)
			}
			undisturbed, slowest, middle = append(undisturbed, alone.at(100)), append(slowest, took.at(100)), append(middle, took.median())
		}
		r.note(fmt.Sprintf("burst of %d creates without webhook: all answered after", s.burst), "%.2f s (median of %d bursts)", undisturbed.median().Seconds(), s.bursts)
		r.note(fmt.Sprintf("burst of %d creates at %d places, %d replicas: admitted", s.burst, places, burstReplicas), "%d in each of %d bursts", places, s.bursts)
		r.note("half of them answered after", "%.2f s (median of the bursts)", middle.median().Seconds())
		r.atMost("all of them answered after (worst burst)", slowest.at(100).Seconds(), 2, "s")
		return nil
	})
}

// burst creates as many virtual machines at once, half of them by each environment, takes away those that came to be, and counts the
// denials. Only denials by the cap are expected.
func (s *stage) burst(ctx context.Context, namespace string, size, number int) (took times, denials int, err error) {
	asked := make([]*unstructured.Unstructured, size)
	for i := range asked {
		if asked[i], err = objectOf(backend.VMContainerDisk, namespace, lab.Environments[i%len(lab.Environments)], number*size+i+1); err != nil {
			return nil, 0, err
		}
	}
	took = make(times, size)
	answers := make([]error, size)
	creator := func(i int) *backend.Backend {
		if namespace == bare.namespace {
			return s.AdminBackend
		}
		return s.Backends[lab.Environments[i%len(lab.Environments)]]
	}
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range asked {
		wait.Go(func() {
			<-start
			started := time.Now()
			_, answers[i] = creator(i).CreateObject(ctx, asked[i], metav1.CreateOptions{})
			took[i] = time.Since(started)
		})
	}
	close(start)
	wait.Wait()
	for i, err := range answers {
		switch codes := backend.DenialCodes(err); {
		case err == nil:
		case slices.Equal(codes, []string{"CapVMs"}), slices.Equal(codes, []string{"CapReserved"}):
			denials++
		default:
			return nil, 0, fmt.Errorf("create %d of a burst: %w", i, err)
		}
	}
	return took, denials, s.clear(ctx, machines, namespace)
}
