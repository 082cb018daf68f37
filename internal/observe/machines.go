package observe

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Machines watches the virtual machines of the namespace, metadata only, and tells Prometheus which should be gone, and of those
// that a reaper asked to go how long it took. It is a leader's runnable of a controller-runtime manager and a
// prometheus.Collector, which has nothing to tell unless the runnable runs and its first list is in.
//
// The watch is its own. The manager's cache, which owner links go by, holds nothing without a session's label, and a machine
// that lost its label must not get out of sight here; the ledger's witness keeps no more of a machine than its UID.
type Machines struct {
	client   metadata.Interface
	contract lab.Contract
	clock    clock.PassiveClock
	log      *zap.Logger
	lateness lateness
	going    *going

	mutex sync.Mutex
	// informer is nil where this replica does not lead.
	informer cache.SharedIndexInformer
}

// NewMachines makes the watch; Start runs it.
func NewMachines(client metadata.Interface, contract lab.Contract, passiveClock clock.PassiveClock, log *zap.Logger) *Machines {
	return &Machines{
		client: client, contract: contract, clock: passiveClock, log: log,
		lateness: newLateness(), going: newGoing(contract.Environments),
	}
}

// Start watches until the context ends, and then tells no more.
func (m *Machines) Start(ctx context.Context) error {
	resource := kubevirtv1.GroupVersion.WithResource("virtualmachines")
	informer := metadatainformer.NewFilteredMetadataInformer(m.client, resource, m.contract.VMNamespace, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(m.essence); err != nil {
		return fmt.Errorf("preparing the watch of virtual machines: %w", err)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: m.gone}); err != nil {
		return fmt.Errorf("preparing the watch of virtual machines: %w", err)
	}
	m.use(informer)
	defer m.use(nil)
	informer.RunWithContext(ctx)
	return nil
}

// NeedLeaderElection is true: see the package comment.
func (m *Machines) NeedLeaderElection() bool { return true }

func (m *Machines) use(informer cache.SharedIndexInformer) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.informer = informer
}

// essence is what is kept of a machine's metadata.
func (m *Machines) essence(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		DeletionTimestamp: full.DeletionTimestamp, Annotations: map[string]string{},
		Labels: map[string]string{m.contract.Labels.Environment: full.Labels[m.contract.Labels.Environment]},
	}}
	for _, key := range []string{lab.DeadlineAnnotation, lab.ReapedAnnotation} {
		if value, found := full.Annotations[key]; found {
			kept.Annotations[key] = value
		}
	}
	return kept, nil
}

// environment is the machine's, in a word that nobody but the configuration chose.
func (m *Machines) environment(machine *metav1.PartialObjectMetadata) string {
	if name := machine.Labels[m.contract.Labels.Environment]; m.contract.HasEnvironment(name) {
		return name
	}
	return elsewhere
}

// gone notes that a machine is gone. The moment is known only where the watch itself said so: after a gap that it could not bridge
// a new list lacks the machine, which tells that it went and not when.
func (m *Machines) gone(object any) {
	at := m.clock.Now()
	lost, unseen := object.(cache.DeletedFinalStateUnknown)
	if unseen {
		object = lost.Obj
	}
	machine, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	value, reaped := machine.Annotations[lab.ReapedAnnotation]
	if !reaped {
		return
	}
	environment := m.environment(machine)
	log := m.log.With(zap.String("machine", machine.Name), zap.String("environment", environment))
	mark, err := lab.ParseReaped(value)
	if err == nil && (mark.Since.IsZero() || mark.DeletionAskedAt.IsZero()) {
		err = fmt.Errorf("annotation %s tells no time: %q", lab.ReapedAnnotation, value)
	}
	switch {
	case err != nil:
		log.Warn("a virtual machine is gone whose annotation cannot be read; how long it took is not counted", zap.Error(err))
	case unseen:
		m.going.unseen.WithLabelValues(environment).Inc()
		log.Info("a reaped virtual machine went while the watch was interrupted; how long it took is not counted")
	default:
		m.going.observe(environment, mark, at)
		log.Info(lab.GoneMessage, zap.String("reason", mark.Reason),
			zap.Time("since", mark.Since), zap.Time("deletionAskedAt", mark.DeletionAskedAt), zap.Time("goneAt", at))
	}
}

// Describe implements prometheus.Collector.
func (m *Machines) Describe(descriptions chan<- *prometheus.Desc) {
	m.lateness.describe(descriptions)
	m.going.describe(descriptions)
}

// Collect implements prometheus.Collector.
func (m *Machines) Collect(metrics chan<- prometheus.Metric) {
	m.mutex.Lock()
	informer := m.informer
	m.mutex.Unlock()
	if informer == nil || !informer.HasSynced() {
		return
	}
	counts := map[string]late{elsewhere: {}}
	for _, environment := range m.contract.Environments {
		counts[environment] = late{}
	}
	now := m.clock.Now()
	for _, object := range informer.GetStore().List() {
		if machine, ok := object.(*metav1.PartialObjectMetadata); ok {
			environment := m.environment(machine)
			counts[environment] = counts[environment].with(machine, now)
		}
	}
	m.lateness.collect(metrics, counts)
	m.going.collect(metrics)
}
