// Package controlplane runs a real Kubernetes control plane on loopback for tests: etcd, kube-apiserver and
// kube-controller-manager with KubeVirt's real CustomResourceDefinitions. There are no nodes: a Pod stays pending.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/process"
)

// Options change what Start starts. The zero value is a plain control plane.
type Options struct {
	// Progress is told what is being built or started; nil: nothing is said, not even during a first build of many minutes.
	Progress io.Writer
	// AdmissionPlugins are enabled besides the API server's defaults, NodeRestriction and ResourceQuota.
	AdmissionPlugins []string
	// Controllers run besides those that a cluster without nodes has a use for, by the names that kube-controller-manager gives them.
	Controllers []string
	// Scheduler starts kube-scheduler too, for a cluster with nodes, real or played.
	Scheduler bool
	// Definitions are CustomResourceDefinitions to install besides KubeVirt's, as YAML documents.
	Definitions []byte
	// AuditedUsers are users of whom the audit log has every request, reads too.
	AuditedUsers []string
	// APIServerFlags are added to kube-apiserver's command line, after, and so over, our own.
	APIServerFlags []string
}

// ControlPlane is a running control plane. It belongs to nobody else: every call of Start makes one of its own.
type ControlPlane struct {
	group     *process.Group
	authority *authority
	admin     *rest.Config

	etcd              *component
	apiServer         *component
	controllerManager *component
	// scheduler is nil where none was asked for.
	scheduler *component
}

// Start brings up etcd, kube-apiserver and kube-controller-manager, and returns when KubeVirt's resources are served and the
// garbage collector, the quota and the ServiceAccount controller have been seen at work. The context bounds the start alone. If the
// program ends without Stop, a watchdog ends the servers and removes their files.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	set, err := binaries.Locate(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup("", "vmwarden-controlplane")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{group: group}
	if err := c.start(ctx, set, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, set *binaries.Set, options Options) error {
	began := time.Now()
	step := func(what string) {
		fmt.Fprintf(options.Progress, "%6.2fs %s\n", time.Since(began).Seconds(), what)
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx, set.Etcd); err != nil {
		return err
	}
	step("etcd is ready")
	if err := c.startAPIServer(ctx, set.APIServer, options); err != nil {
		return err
	}
	step("kube-apiserver is ready at " + c.admin.Host)
	// Before the controller manager: its garbage collector and quota look for new resources only every 30 seconds, and would not
	// see KubeVirt's until then.
	if err := c.installDefinitions(ctx, set.CustomResourceDefinitions, options.Definitions); err != nil {
		return err
	}
	step("KubeVirt's resources are served")
	if err := c.startControllerManager(ctx, set.ControllerManager, options); err != nil {
		return err
	}
	step("kube-controller-manager is at work")
	if !options.Scheduler {
		return nil
	}
	return c.startScheduler(ctx, options)
}

// Stop ends the servers and removes their files. Stopping twice does nothing.
func (c *ControlPlane) Stop() error { return c.group.Close() }

// Dir is the directory that holds everything the control plane writes: logs, certificates, data. It goes with Stop.
func (c *ControlPlane) Dir() string { return c.group.Directory() }

// AuditLog is the path of kube-apiserver's audit log. A request that was answered is in it.
func (c *ControlPlane) AuditLog() string { return c.path("audit.log") }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.Dir(), name) }
