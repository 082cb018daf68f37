package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/inventory"
	"github.com/ttlab/vmwarden/internal/policy/launcher"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// places is everything that decides on places.
type places struct {
	ledger *ledger.Ledger
	// needs is nil where no budget is set.
	needs *inventory.Needs
}

// newPlaces wires the ledger. Without a witness it only counts.
func newPlaces(s settings, witness ledger.Witness) (places, error) {
	core, err := kubernetes.NewForConfig(s.cluster)
	if err != nil {
		return places{}, fmt.Errorf("making the client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(s.cluster)
	if err != nil {
		return places{}, fmt.Errorf("making the metadata client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(s.cluster)
	if err != nil {
		return places{}, fmt.Errorf("making the dynamic client: %w", err)
	}
	namespace := s.config.VMNamespace
	census := &ledger.MetadataCensus{
		Client: metadataClient, Namespace: namespace,
		Reader: ledger.Reader{EnvironmentLabel: s.config.Labels.Environment, SessionLabel: s.config.Labels.Session, Deadline: deadlineOf},
	}
	p := places{ledger: &ledger.Ledger{
		Book:        &ledger.ConfigMapBook{ConfigMaps: core.CoreV1().ConfigMaps(namespace), Log: s.log},
		Census:      census,
		Witness:     witness,
		Limits:      limits(s.config),
		Reservation: s.config.Caps.Reservation.Duration,
		Clock:       s.clock,
	}}
	if p.ledger.Limits.MilliCPU != nil || p.ledger.Limits.Memory != nil {
		p.needs = &inventory.Needs{Client: dynamicClient, Namespace: namespace, Clock: s.clock, Requests: &inventory.Requests{
			Cluster:       launcherCluster(s.config.Caps.KubeVirt),
			InstanceTypes: &inventory.InstanceTypes{Client: dynamicClient, Namespace: namespace},
		}}
		census.Needs = p.needs
	}
	return p, nil
}

// deadlineOf reads the deadline annotation; one that cannot be read is the reaper's to report.
func deadlineOf(annotations map[string]string) time.Time {
	deadline, err := lab.ParseDeadline(annotations[lab.DeadlineAnnotation])
	if err != nil {
		return time.Time{}
	}
	return deadline
}

func limits(c *config.WardenConfig) ledger.Limits {
	l := ledger.Limits{VMs: c.Caps.VMs, Session: new(c.Caps.Session), Environments: map[string]int{}}
	for _, environment := range c.Environments {
		if environment.Cap != nil {
			l.Environments[environment.Name] = *environment.Cap
		}
	}
	if !c.Caps.CPU.Unlimited {
		l.MilliCPU = new(c.Caps.CPU.Quantity.MilliValue())
	}
	if !c.Caps.Memory.Unlimited {
		l.Memory = new(c.Caps.Memory.Quantity.Value())
	}
	return l
}

func launcherCluster(k config.KubeVirt) launcher.Cluster {
	return launcher.Cluster{
		CPUAllocationRatio:       k.CPUAllocationRatio,
		MemoryOvercommitPercent:  k.MemoryOvercommitPercent,
		AdditionalOverheadRatio:  k.AdditionalOverheadRatio.AsApproximateFloat64(),
		SerialConsoleLogDisabled: k.SerialConsoleLogDisabled,
	}
}

// blind is the witness of whoever counts once and takes nothing.
type blind struct{}

func (blind) Seen(types.UID) bool { return false }
