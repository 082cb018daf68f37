// Package stack is a lab with KubeVirt: what package lab starts, virt-api and virt-controller beside it, and what is played for
// them. Tests on played nodes and tests on a real kubelet share it.
package stack

import (
	"context"
	"errors"
	"io"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	kubevirtclient "kubevirt.io/client-go/kubevirt"

	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/kubevirt"
	"github.com/ttlab/vmwarden/test/lab"
)

// Options change what Start starts.
type Options struct {
	// Progress is told what is being built or started; nil: nothing is said.
	Progress io.Writer
	// PlayedNodes are the names of nodes that are played.
	PlayedNodes []string
	// FeatureGates are KubeVirt's.
	FeatureGates []string
}

// Stack is a running lab with KubeVirt.
type Stack struct {
	*lab.Lab
	KubeVirt *kubevirt.KubeVirt
	// Clients, Objects and Machines act as an admin.
	Clients  *kubernetes.Clientset
	Objects  dynamic.Interface
	Machines *kubevirtclient.Clientset

	stage    *kubevirt.Stage
	hand     *kubevirt.Hand
	importer *kubevirt.Importer
}

// Start starts one replica of the webhook: how replicas agree is shown elsewhere.
func Start(ctx context.Context, options Options) (*Stack, error) {
	started, err := lab.StartWith(ctx, lab.Options{
		Progress: options.Progress, Replicas: 1,
		ControlPlane: controlplane.Options{
			Scheduler: true, Controllers: kubevirt.VolumeControllers, Definitions: kubevirt.ImporterDefinitions,
		},
	})
	if err != nil {
		return nil, err
	}
	s := &Stack{Lab: started}
	if err := s.start(ctx, options); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, options Options) error {
	var err error
	if s.Clients, err = kubernetes.NewForConfig(s.Admin); err != nil {
		return err
	}
	if s.Objects, err = dynamic.NewForConfig(s.Admin); err != nil {
		return err
	}
	if s.Machines, err = kubevirtclient.NewForConfig(s.Admin); err != nil {
		return err
	}
	s.KubeVirt, err = kubevirt.Start(ctx, s.ControlPlane, kubevirt.Options{Progress: options.Progress, FeatureGates: options.FeatureGates})
	if err != nil {
		return err
	}
	if s.stage, err = kubevirt.PlayNodes(ctx, s.ControlPlane, options.PlayedNodes...); err != nil {
		return err
	}
	if s.hand, err = kubevirt.PlayHandler(ctx, s.ControlPlane); err != nil {
		return err
	}
	s.importer, err = kubevirt.PlayImporter(ctx, s.ControlPlane)
	return err
}

// Stop ends everything and leaves nothing behind.
func (s *Stack) Stop() error {
	if s.importer != nil {
		s.importer.Close()
	}
	if s.hand != nil {
		s.hand.Close()
	}
	if s.stage != nil {
		s.stage.Close()
	}
	var problems []error
	if s.KubeVirt != nil {
		problems = append(problems, s.KubeVirt.Stop())
	}
	return errors.Join(append(problems, s.Lab.Stop())...)
}
