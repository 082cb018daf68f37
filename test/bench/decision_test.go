package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/policy/inventory"
	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/controlplane"
)

const namespace = "lab-vms"

// blind has seen nothing, so that every reservation leaves by the list.
type blind struct{}

func (blind) Seen(types.UID) bool { return false }

// BenchmarkDecision measures single, uncontended decisions that are granted, with so many virtual machines in the namespace.
func BenchmarkDecision(b *testing.B) {
	plane, err := controlplane.Start(b.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			b.Error(err)
		}
	})
	config := plane.AdminConfig()
	requests := &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, requests} })
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := core.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	existing := 0
	for _, machines := range []int{8, 1000} {
		create(b, config, existing, machines)
		existing = machines
		b.Run(fmt.Sprintf("machines=%d", machines), func(b *testing.B) { decisions(b, config, core, requests) })
	}
}

type counting struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(request)
}

// create makes the backend's virtual machines from one number up to another.
func create(b *testing.B, config *rest.Config, from, to int) {
	b.Helper()
	admin, err := backend.New("prod", config)
	if err != nil {
		b.Fatal(err)
	}
	creates, ctx := errgroup.WithContext(b.Context())
	creates.SetLimit(8)
	for i := from; i < to; i++ {
		creates.Go(func() error {
			lesson := backend.Lesson{Session: fmt.Sprintf("%08d-0000-4000-8000-%012d", i, i), Environment: "prod"}
			objects, err := backend.Objects(backend.VMContainerDisk, lesson)
			if err != nil {
				return err
			}
			_, err = admin.CreateObject(ctx, objects[0], metav1.CreateOptions{})
			return err
		})
	}
	if err := creates.Wait(); err != nil {
		b.Fatal(err)
	}
}

func decisions(b *testing.B, config *rest.Config, core *kubernetes.Clientset, requests *atomic.Int64) {
	b.Helper()
	lists, err := metadata.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	needs := &inventory.Needs{Client: objects, Namespace: namespace, Clock: clock.RealClock{}, Requests: &inventory.Requests{
		Cluster: launcher.Cluster{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100},
	}}
	limit := int64(1) << 60
	l := &ledger.Ledger{
		Book: &ledger.ConfigMapBook{ConfigMaps: core.CoreV1().ConfigMaps(namespace), Log: zap.NewNop()},
		Census: &ledger.MetadataCensus{
			Client: lists, Namespace: namespace,
			Reader: ledger.Reader{EnvironmentLabel: "ttlab.io/env", SessionLabel: "ttlab.io/session", Deadline: func(map[string]string) time.Time { return time.Time{} }},
			Needs:  needs,
		},
		Witness: blind{}, Clock: clock.RealClock{}, Reservation: 75 * time.Second,
		Limits: ledger.Limits{VMs: 1 << 30, Session: new(3), MilliCPU: &limit, Memory: &limit},
	}
	// One name, so that the page does not grow with the number of runs.
	claim := ledger.Claim{Name: "next", UID: "next"}
	// As in the webhook, a watch finds out what every virtual machine needs.
	watching, stop := context.WithCancel(b.Context())
	watch := make(chan error, 1)
	go func() { watch <- needs.Start(watching) }()
	b.Cleanup(func() {
		stop()
		if err := <-watch; err != nil {
			b.Error(err)
		}
	})
	for _, err := l.Decide(b.Context(), claim); err != nil; _, err = l.Decide(b.Context(), claim) {
		if b.Context().Err() != nil {
			b.Fatal(err)
		}
	}
	requests.Store(0)
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		started := time.Now()
		verdict, err := l.Decide(b.Context(), claim)
		if err != nil || !verdict.Granted {
			b.Fatalf("granted: %t, %v", verdict.Granted, err)
		}
		times = append(times, time.Since(started))
	}
	slices.Sort(times)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(times[len(times)*percent/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", percent))
	}
	b.ReportMetric(float64(requests.Load())/float64(len(times)), "calls/op")
}
