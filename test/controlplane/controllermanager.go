package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/process"
)

// controllers are those that a cluster without nodes has a use for.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"disruption-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"pod-garbage-collector-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"ttl-after-finished-controller",
}

func (c *ControlPlane) startControllerManager(ctx context.Context, path string, options Options) error {
	config, err := c.UserConfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig := c.path("controller-manager.kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.controllerManager = &component{
		spec: process.Spec{
			Name: "kube-controller-manager",
			Path: path,
			Args: []string{
				"--kubeconfig=" + kubeconfig,
				"--controllers=" + strings.Join(slices.Concat(controllers, options.Controllers), ","),
				// Each controller under its own name, as in every real cluster: admission rules know them by it.
				"--use-service-account-credentials=true",
				"--root-ca-file=" + c.path("ca.crt"),
				"--leader-elect=false",
				// No port: nobody asks it anything, and what is not open cannot be taken.
				"--secure-port=0",
				// The default of 20 requests a second spreads the start over many seconds.
				"--kube-api-qps=1000",
				"--kube-api-burst=1000",
			},
		},
		prepare: func(ctx context.Context) error { return giveWork(ctx, client) },
		ready:   func(ctx context.Context) error { return workDone(ctx, client) },
	}
	return c.controllerManager.run(ctx, c.group)
}
