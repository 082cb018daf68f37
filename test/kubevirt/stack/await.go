package stack

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/test/lab"
)

// retry is the pause between two looks.
const retry = 50 * time.Millisecond

// Patience bounds the wait for something that other processes do. It is generous: a loaded machine is no failure.
const Patience = time.Minute

// Await waits until condition holds and fails the test if it does not. An error of condition is what it still waits for.
func (s *Stack) Await(t testing.TB, what string, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), retry, Patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v\nthe end of virt-controller's log:\n%s", what, errors.Join(err, last), s.KubeVirt.ControllerLog(10))
	}
}

// AwaitGone waits until a GET answers NotFound.
func (s *Stack) AwaitGone(t testing.TB, what string, get func(ctx context.Context) error) {
	t.Helper()
	s.Await(t, what+" is gone", func(ctx context.Context) error {
		err := get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// AwaitRunning waits until the virtual machine's instance runs, and gives its launcher Pod.
func (s *Stack) AwaitRunning(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	s.Await(t, name+" runs", func(ctx context.Context) error {
		instance, err := s.Instance(ctx, name)
		if err == nil && instance.Status.Phase != kubevirtv1.Running {
			err = fmt.Errorf("its instance is %s: %v", instance.Status.Phase, instance.Status.Conditions)
		}
		return err
	})
	pods, err := s.Launchers(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			return &pods[i]
		}
	}
	t.Fatalf("%s runs, and none of its %d launcher Pods does", name, len(pods))
	return nil
}

// AwaitVMGone waits until the virtual machine is gone, and with it its instance and its launcher Pods.
func (s *Stack) AwaitVMGone(t testing.TB, name string) {
	t.Helper()
	s.AwaitGone(t, name, func(ctx context.Context) error {
		_, err := s.Machines.KubevirtV1().VirtualMachines(lab.VMNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	s.AwaitGone(t, name+"'s instance", func(ctx context.Context) error {
		_, err := s.Instance(ctx, name)
		return err
	})
	s.Await(t, name+"'s launcher Pods are gone", func(ctx context.Context) error {
		pods, err := s.Launchers(ctx, name)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are left", len(pods))
		}
		return err
	})
}

// Instance is the instance of that name.
func (s *Stack) Instance(ctx context.Context, name string) (*kubevirtv1.VirtualMachineInstance, error) {
	return s.Machines.KubevirtV1().VirtualMachineInstances(lab.VMNamespace).Get(ctx, name, metav1.GetOptions{})
}

// Launchers are the launcher Pods of the instance of that name, in whatever state.
func (s *Stack) Launchers(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := s.Clients.CoreV1().Pods(lab.VMNamespace).List(ctx, metav1.ListOptions{LabelSelector: kubevirtv1.AppLabel + "=virt-launcher"})
	if err != nil {
		return nil, err
	}
	var launchers []corev1.Pod
	for _, pod := range pods.Items {
		if pod.Annotations[kubevirtv1.DomainAnnotation] == name {
			launchers = append(launchers, pod)
		}
	}
	return launchers, nil
}
