// Package observe is what the webhook process watches for Prometheus beside its own decisions: the passes of the reapers, and
// the virtual machines that should be gone.
//
// Both are facts about the namespace, not about a replica. The leader alone exports them, so that a sum over replicas counts
// nothing twice: leading ends before another replica's begins, since the lease outlasts the leader's own limit for renewing it.
// A replica that does not lead has no such series at all. That none has them is itself an alert.
//
// No label is anything that a requester, a student or a ConfigMap chose: environments are the configuration's, everything else
// is from a fixed list.
package observe

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/status"
)

// elsewhere stands for all objects that name none of the configured environments, as in the metrics of the caps.
const elsewhere = "no configured environment"

// Options say what is observed, and where it is told.
type Options struct {
	Contract lab.Contract
	Registry prometheus.Registerer
	// Certificate tells until when the serving certificate is valid, and false where that is not known just now.
	Certificate func() (notAfter time.Time, ok bool)
	Clock       clock.PassiveClock
	Log         *zap.Logger
}

// SetUp registers the metrics and adds what feeds them to a manager. Needs list and watch on virtual machines, and get on the status
// ConfigMap of every environment.
func SetUp(m manager.Manager, o Options) error {
	core, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client for the status ConfigMaps: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the metadata client: %w", err)
	}
	var sources []Source
	for _, environment := range o.Contract.Environments {
		store := status.Store{ConfigMaps: core.CoreV1().ConfigMaps(o.Contract.VMNamespace), Environment: environment}
		sources = append(sources, Source{Environment: environment, Status: store})
	}
	passes := NewPasses(sources, o.Log)
	machines := NewMachines(metadataClient, o.Contract, o.Clock, o.Log)
	for _, collector := range []prometheus.Collector{passes, machines, newCertificate(o.Certificate)} {
		if err := o.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	for _, runnable := range []manager.Runnable{passes, machines} {
		if err := m.Add(runnable); err != nil {
			return fmt.Errorf("adding what feeds the metrics to the manager: %w", err)
		}
	}
	return nil
}
