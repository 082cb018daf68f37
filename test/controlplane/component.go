package controlplane

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/ttlab/vmwarden/test/process"
)

// startTimeout is long: on a machine that compiles at the same time a server takes many times its usual seconds.
const startTimeout = 2 * time.Minute

// component is one server of the control plane. Its specification stays, so that it can be started again the same way.
type component struct {
	spec process.Spec
	// prepare, if set, runs before every start, and ready, after it, until it succeeds.
	prepare func(context.Context) error
	ready   func(context.Context) error
	process *process.Process
}

// run starts the component and waits until it is ready.
func (c *component) run(ctx context.Context, group *process.Group) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return fmt.Errorf("preparing the start of %s: %w", c.spec.Name, err)
		}
	}
	var err error
	if c.process, err = group.Start(ctx, c.spec); err != nil {
		return err
	}
	return c.process.AwaitReady(ctx, c.ready)
}

// Pause stops a component ("etcd", "kube-apiserver", "kube-controller-manager" or "kube-scheduler") as if its machine hung: connections stay open,
// and nothing answers.
func (c *ControlPlane) Pause(name string) error { return c.signal(name, syscall.SIGSTOP) }

// Resume lets a paused component run on.
func (c *ControlPlane) Resume(name string) error { return c.signal(name, syscall.SIGCONT) }

// Restart kills a component, as a crash would, starts it again with the same data at the same address, and waits until it is ready.
// For etcd, that does not mean that kube-apiserver has found it again.
func (c *ControlPlane) Restart(ctx context.Context, name string) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	if err := component.process.Stop(0); err != nil {
		return err
	}
	return component.run(ctx, c.group)
}

func (c *ControlPlane) signal(name string, signal syscall.Signal) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	return component.process.Signal(signal)
}

func (c *ControlPlane) component(name string) (*component, error) {
	for _, component := range []*component{c.etcd, c.apiServer, c.controllerManager, c.scheduler} {
		if component != nil && component.spec.Name == name {
			return component, nil
		}
	}
	return nil, fmt.Errorf("a control plane has no component %q", name)
}
