package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaults is what the file is decoded on top of, so that a value that somebody wrote, zero included, is never taken for a
// missing one. The values are those of the platform's design: a lesson of at most 180 minutes, eight virtual machines.
func defaults() *WardenConfig {
	return &WardenConfig{
		Mode: Enforce,
		Labels: Labels{
			Lab:         "ttlab.io/lab",
			LabValue:    "true",
			Session:     "ttlab.io/session",
			Environment: "ttlab.io/env",
			Golden:      "ttlab.io/golden",
		},
		SessionIDFormat: "UUID",
		Caps:            defaultCaps(),
		Lifetimes: Lifetimes{
			Ceiling:       metav1.Duration{Duration: 180 * time.Minute},
			DeadlineGrace: metav1.Duration{Duration: 15 * time.Minute},
		},
		Database: Database{
			Table: "sessions",
			Columns: Columns{
				ID:         "id",
				Runtime:    "runtime",
				Status:     "status",
				VMName:     "vm_name",
				StartedAt:  "started_at",
				ExpiresAt:  "expires_at",
				FinishedAt: "finished_at",
			},
			Statuses: Statuses{Starting: "starting", Running: "running", Expired: "expired", Failed: "failed"},
			Runtimes: Runtimes{VM: "vm", Pod: "pod"},
		},
		Reaping: Reaping{
			OrphanMinimumAge: metav1.Duration{Duration: 5 * time.Minute},
			StartupGrace:     metav1.Duration{Duration: 10 * time.Minute},
			Concurrency:      4,
			ItemTimeout:      metav1.Duration{Duration: 20 * time.Second},
			PassTimeout:      metav1.Duration{Duration: 5 * time.Minute},
		},
		Brakes: Brakes{
			Orphans:         Brake{MaxCount: 4, MaxSharePercent: 50, ShareFloor: 3},
			Ghosts:          Brake{MaxCount: 4, MaxSharePercent: 50, ShareFloor: 3},
			ClockDifference: metav1.Duration{Duration: 3 * time.Minute},
		},
	}
}

// defaultLists gives the lists that the file does not name their defaults. It runs after decoding: a decoder that fills a
// list in place could leave parts of a default element in a written one.
func defaultLists(c *WardenConfig) {
	if c.TrustedControllers == nil {
		c.TrustedControllers = []ServiceAccount{
			{Namespace: "kube-system", Name: "generic-garbage-collector"},
			{Namespace: "kube-system", Name: "namespace-controller"},
			{Namespace: "kubevirt", Name: "kubevirt-apiserver"},
			{Namespace: "kubevirt", Name: "kubevirt-controller"},
			{Namespace: "kubevirt", Name: "kubevirt-handler"},
			{Namespace: "kubevirt", Name: "kubevirt-operator"},
		}
	}
	if c.Admins.Groups == nil && c.Admins.Users == nil {
		// kubeadm's admin.conf is in the second group since Kubernetes 1.29.
		c.Admins.Groups = []string{"system:masters", "kubeadm:cluster-admins"}
	}
	if c.Reaping.SecretNames == nil {
		c.Reaping.SecretNames = []string{MachinePlaceholder + "-cloudinit", "lab-" + SessionPrefixPlaceholder + "-cloudinit"}
	}
	if c.Database.Statuses.Ended == nil {
		c.Database.Statuses.Ended = []string{"finished"}
	}
	for i := range c.Environments {
		if c.Environments[i].SessionsDatabase == nil {
			c.Environments[i].SessionsDatabase = new(true)
		}
	}
}
