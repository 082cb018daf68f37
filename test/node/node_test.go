package node_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const patience = 2 * time.Minute

func clients(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, errors.Join(err, last))
	}
}

// pod is one that waits until it is told to end.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers:                    []corev1.Container{{Name: "wait", Image: boxImage, Command: []string{"/usr/bin/wait"}}},
		},
	}
}

func create(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if _, err := clients(t).CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func awaitPhase(t *testing.T, name string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	await(t, fmt.Sprintf("Pod %s is %s", name, phase), func(ctx context.Context) (err error) {
		found, err = clients(t).CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err == nil && found.Status.Phase != phase {
			err = fmt.Errorf("it is %s: %v", found.Status.Phase, found.Status.ContainerStatuses)
		}
		return err
	})
	return found
}

func TestAPodRunsAndIsToldToEnd(t *testing.T) {
	create(t, pod("runs"))
	awaitPhase(t, "runs", corev1.PodRunning)
	pods := clients(t).CoreV1().Pods(metav1.NamespaceDefault)
	log, err := pods.GetLogs("runs", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), "playing wait") {
		t.Errorf("its log is %q (%v)", log, err)
	}
	if err := pods.Delete(t.Context(), "runs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "it is gone", func(ctx context.Context) error {
		_, err := pods.Get(ctx, "runs", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
}

func TestAPodIsEndedByItsOwnDeadline(t *testing.T) {
	limited := pod("limited")
	limited.Spec.ActiveDeadlineSeconds = new(int64(2))
	create(t, limited)
	if ended := awaitPhase(t, "limited", corev1.PodFailed); ended.Status.Reason != "DeadlineExceeded" {
		t.Errorf("it ended by %q, want DeadlineExceeded", ended.Status.Reason)
	}
}

func TestAPodHasTheHostsNetworkWhereItAsks(t *testing.T) {
	host := pod("host")
	host.Spec.HostNetwork = true
	create(t, host)
	running := awaitPhase(t, "host", corev1.PodRunning)
	if running.Status.PodIP != running.Status.HostIP {
		t.Errorf("its address is %s, and the node's %s", running.Status.PodIP, running.Status.HostIP)
	}
}

func TestAJobReachesTheAPIServerAsItsOwnAccount(t *testing.T) {
	ctx := t.Context()
	set := clients(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "asker"}}
	if _, err := set.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "asker"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: metav1.NamespaceDefault, Name: "asker"}},
	}
	if _, err := set.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "ask"}, Spec: batchv1.JobSpec{
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy:      corev1.RestartPolicyOnFailure,
			ServiceAccountName: "asker",
			Containers:         []corev1.Container{{Name: "ask", Image: boxImage, Args: []string{"ask", "/api/v1/namespaces/default/pods"}}},
		}},
	}}
	if _, err := set.BatchV1().Jobs(metav1.NamespaceDefault).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the Job succeeds", func(ctx context.Context) error {
		found, err := set.BatchV1().Jobs(metav1.NamespaceDefault).Get(ctx, "ask", metav1.GetOptions{})
		if err == nil && found.Status.Succeeded != 1 {
			err = fmt.Errorf("its status is %+v", found.Status)
		}
		return err
	})
}

func TestAContainerSurvivesItsKubelet(t *testing.T) {
	create(t, pod("survivor"))
	awaitPhase(t, "survivor", corev1.PodRunning)
	if err := worker.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := worker.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if restarts := awaitPhase(t, "survivor", corev1.PodRunning).Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		t.Errorf("it was restarted %d times", restarts)
	}
}

// Named so that it comes last: it ends the node.
func TestZNothingIsLeftOfANodeThatStopped(t *testing.T) {
	create(t, pod("left"))
	awaitPhase(t, "left", corev1.PodRunning)
	directory := worker.Dir()
	stopped := worker
	worker = nil
	if err := stopped.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{directory, "/sys/fs/cgroup/*/kubepods"} {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			t.Errorf("left behind: %v (%v)", found, err)
		}
	}
	for _, c := range []struct{ of, program, argument string }{{"an address", "ip", "address"}, {"a mount", "cat", "/proc/mounts"}, {"a process", "ps", "axo args"}} {
		output, err := exec.Command(c.program, strings.Fields(c.argument)...).Output()
		if err != nil || strings.Contains(string(output), directory) || strings.Contains(string(output), " 10.96.0.1/") {
			t.Errorf("%s is left (%v):\n%s", c.of, err, output)
		}
	}
}
