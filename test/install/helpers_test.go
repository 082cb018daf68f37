package install_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/chart"
)

// patience is for a machine that compiles at the same time, and for a CronJob that starts at the minute.
const patience = 4 * time.Minute

func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, errors.Join(err, last), podsOf(t))
	}
}

// podsOf tells of our Pods, for a test that failed.
func podsOf(t *testing.T) string {
	t.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, pod := range pods.Items {
		text += fmt.Sprintf("%s %s %s\n", pod.Name, pod.Status.Phase, pod.Status.Message)
		for _, status := range pod.Status.ContainerStatuses {
			text += fmt.Sprintf("  ready %t, %+v, last %+v\n", status.Ready, status.State, status.LastTerminationState)
		}
		log, err := clients.CoreV1().Pods(ownNamespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(15))}).DoRaw(context.WithoutCancel(t.Context()))
		text += fmt.Sprintf("%s (%v)\n", log, err)
	}
	return text
}

// install installs the chart, or upgrades it, and waits until everything is ready.
func install(t *testing.T, set ...string) {
	t.Helper()
	if _, err := helm.Install(t.Context(), chart.Release{Name: "vmwarden", Namespace: ownNamespace, Values: []string{values}, Set: set}, "--wait", "--timeout", "4m"); err != nil {
		t.Fatalf("%v\n%s", err, podsOf(t))
	}
}

// scale sets the number of replicas and waits until so many are ready and no other is left.
func scale(t *testing.T, replicas int32) {
	t.Helper()
	found, err := clients.AppsV1().Deployments(ownNamespace).GetScale(t.Context(), "vmwarden-webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Spec.Replicas = replicas
	if _, err := clients.AppsV1().Deployments(ownNamespace).UpdateScale(t.Context(), "vmwarden-webhook", found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, int(replicas))
}

func awaitReplicas(t *testing.T, replicas int) {
	t.Helper()
	await(t, fmt.Sprintf("%d replicas are ready and no other is left", replicas), func(ctx context.Context) error {
		pods, err := webhookPods(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready != replicas || len(pods) != replicas {
			return fmt.Errorf("%d of %d Pods are ready", ready, len(pods))
		}
		return nil
	})
}

func webhookPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := clients.CoreV1().Pods(ownNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func certificateSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := clients.CoreV1().Secrets(ownNamespace).Get(t.Context(), "vmwarden-webhook-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// caBundles are what both configurations trust, by kind.
func caBundles(ctx context.Context) (map[string]string, error) {
	mutating, errMutating := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "vmwarden", metav1.GetOptions{})
	validating, errValidating := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "vmwarden", metav1.GetOptions{})
	if err := errors.Join(errMutating, errValidating); err != nil {
		return nil, err
	}
	return map[string]string{
		"mutating": string(mutating.Webhooks[0].ClientConfig.CABundle), "validating": string(validating.Webhooks[0].ClientConfig.CABundle),
	}, nil
}

// stream creates virtual machines as prod's backend, one after the other, and deletes each, until the returned function is called,
// which gives how many were created. A create that is refused or lost fails the test.
func stream(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var created int
	var faults []error
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			lesson := backend.Lesson{Session: fmt.Sprintf("c%07x-0000-4000-8000-000000000000", i), Environment: "prod"}
			began := time.Now()
			// A create that was begun is finished: one that we ourselves broke off would say nothing.
			if _, err := prod.Create(context.WithoutCancel(ctx), backend.VMContainerDisk, lesson); err != nil {
				faults = append(faults, fmt.Errorf("create %d, after %s: %w", i, time.Since(began).Round(time.Millisecond), err))
				continue
			}
			created++
			if err := prod.Machines(vmNamespace).Delete(context.WithoutCancel(ctx), lesson.VMName(), metav1.DeleteOptions{}); err != nil {
				faults = append(faults, fmt.Errorf("delete %d: %w", i, err))
			}
		}
	})
	return func() int {
		t.Helper()
		cancel()
		running.Wait()
		if len(faults) > 0 {
			t.Errorf("%d of %d requests failed, the first: %v", len(faults), created+len(faults), faults[0])
		}
		if created == 0 {
			t.Error("nothing was created: the stream shows nothing")
		}
		return created
	}
}

func create(t *testing.T, session string) {
	t.Helper()
	if _, err := prod.Create(t.Context(), backend.VMContainerDisk, backend.Lesson{Session: session, Environment: "prod"}); err != nil {
		t.Fatal(err)
	}
}

func expectGone(t *testing.T, name string) {
	t.Helper()
	await(t, name+" is gone", func(ctx context.Context) error {
		_, err := admin.Machines(vmNamespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
}
