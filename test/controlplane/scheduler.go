package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/process"
)

func (c *ControlPlane) startScheduler(ctx context.Context, options Options) error {
	path, err := binaries.LocateScheduler(ctx, options.Progress)
	if err != nil {
		return err
	}
	config, err := c.UserConfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	kubeconfig := c.path("scheduler.kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.scheduler = &component{
		spec: process.Spec{
			Name: "kube-scheduler",
			Path: path,
			// No port, as for the controller manager.
			Args: []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"},
		},
		ready: func(ctx context.Context) error { return scheduled(ctx, client) },
	}
	return c.scheduler.run(ctx, c.group)
}

// scheduled gives the scheduler a Pod that no node can take, and succeeds when it has said so. Then it takes the Pod away.
func scheduled(ctx context.Context, client kubernetes.Interface) error {
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: workName},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{workName: "nowhere"},
			Containers:   []corev1.Container{{Name: "none", Image: "registry.lab.internal/none:1"}},
		},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating work for the scheduler: %w", err)
	}
	found, err := pods.Get(ctx, workName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("waiting for the scheduler: %w", err)
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return pods.Delete(ctx, workName, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}
	}
	return fmt.Errorf("waiting for the scheduler: the Pod is %s", found.Status.Phase)
}
