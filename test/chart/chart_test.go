package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestANewcomerNamesEnvironmentsAndNothingElse(t *testing.T) {
	objects := render(t, release(newcomer))
	c := configured(t, objects)
	if c.Environments[0].Reaper.Name != "vmwarden-reaper-prod" || c.Environments[0].Reaper.Namespace != "vmwarden" || *c.Environments[1].Cap != 2 {
		t.Errorf("environments = %+v", c.Environments)
	}
	want := []string{"vmwarden/vmwarden-reaper-prod", "vmwarden/vmwarden-reaper-dev"}
	if got := names(objects, "CronJob"); cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) != "" {
		t.Errorf("CronJobs = %v, want %v", got, want)
	}
	quota := find[corev1.ResourceQuota](t, objects, "ResourceQuota", "vmwarden")
	if vms := quota.Spec.Hard["count/virtualmachines.kubevirt.io"]; quota.Namespace != "lab-vms" || vms.Value() != 8 {
		t.Errorf("quota %s/%s: %v", quota.Namespace, quota.Name, quota.Spec.Hard)
	}
}

func TestRenderingTwiceGivesTheSame(t *testing.T) {
	first, errFirst := helm.Template(t.Context(), release(newcomer))
	second, errSecond := helm.Template(t.Context(), release(newcomer))
	if errFirst != nil || errSecond != nil || !bytes.Equal(first, second) {
		t.Errorf("two renderings differ (%v, %v)", errFirst, errSecond)
	}
}

func TestAPassIsBoundedByItsJobAndNeverRunsTwice(t *testing.T) {
	job := find[batchv1.CronJob](t, render(t, release(newcomer)), "CronJob", "vmwarden-reaper-prod").Spec
	if job.ConcurrencyPolicy != batchv1.ForbidConcurrent || *job.StartingDeadlineSeconds < 10 || *job.JobTemplate.Spec.BackoffLimit != 0 {
		t.Errorf("job = %+v", job)
	}
	pod := job.JobTemplate.Spec.Template.Spec
	if *job.JobTemplate.Spec.ActiveDeadlineSeconds != 360 || pod.ActiveDeadlineSeconds != nil {
		t.Error("activeDeadlineSeconds is not the Job's")
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever || *pod.TerminationGracePeriodSeconds < 35 {
		t.Errorf("pod = %+v", pod)
	}
	if *job.SuccessfulJobsHistoryLimit > 5 || *job.FailedJobsHistoryLimit > 5 {
		t.Error("the history is long")
	}
	secret := pod.Containers[0].Env[0].ValueFrom.SecretKeyRef
	if pod.Containers[0].Env[0].Name != "DATABASE_URL" || secret.Name != "vmwarden-database-prod" || secret.Key != "DATABASE_URL" {
		t.Errorf("env = %+v", pod.Containers[0].Env)
	}
}

func TestAnEnvironmentWithoutADatabaseIsGivenNone(t *testing.T) {
	objects := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{"environments[1].sessionsDatabase=false"}})
	if env := find[batchv1.CronJob](t, objects, "CronJob", "vmwarden-reaper-dev").Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env; len(env) != 0 {
		t.Errorf("env = %+v", env)
	}
}

func TestEveryPodIsRestrictedAndHasNoLimitOfCPU(t *testing.T) {
	objects := render(t, release(newcomer))
	deployment := find[appsv1.Deployment](t, objects, "Deployment", "vmwarden-webhook")
	job := find[batchv1.CronJob](t, objects, "CronJob", "vmwarden-reaper-dev")
	for name, pod := range map[string]corev1.PodSpec{"webhook": deployment.Spec.Template.Spec, "reaper": job.Spec.JobTemplate.Spec.Template.Spec} {
		container := pod.Containers[0]
		security := container.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
			*security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Contains(security.Capabilities.Drop, "ALL") {
			t.Errorf("%s: pod %+v, container %+v", name, pod.SecurityContext, security)
		}
		if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited || container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: resources %+v", name, container.Resources)
		}
	}
}

func TestSelectorsHoldNoVersion(t *testing.T) {
	deployment := find[appsv1.Deployment](t, render(t, release(newcomer)), "Deployment", "vmwarden-webhook")
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if strings.Contains(key, "version") || strings.Contains(key, "chart") || strings.Contains(value, "0.1.0") {
			t.Errorf("selector %s=%s", key, value)
		}
	}
}

func TestADrainIsNeverBlocked(t *testing.T) {
	for replicas, want := range map[string]int{"0": 0, "1": 0, "2": 1, "3": 1} {
		objects := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: []string{"webhook.replicas=" + replicas}})
		if got := names(objects, "PodDisruptionBudget"); len(got) != want {
			t.Errorf("%s replicas: %v", replicas, got)
		}
	}
}

func TestAReleaseRunsTheReapersThatLiveWhereItDoes(t *testing.T) {
	webhook := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{split(t)}})
	if got := append(names(webhook, "CronJob"), names(webhook, "NetworkPolicy")...); len(got) != 1 || len(names(webhook, "Deployment")) != 1 {
		t.Errorf("the webhook's release: %v", got)
	}
	reaper := render(t, Release{Name: "vmwarden", Namespace: "ttlab-dev", Values: []string{split(t)}, Set: []string{"webhook.enabled=false"}})
	for kind, want := range map[string][]string{
		"CronJob": {"ttlab-dev/vmwarden-reaper-dev"}, "ServiceAccount": {"ttlab-dev/reaper"}, "Deployment": nil, "ResourceQuota": nil,
		"ClusterRole": nil, "ValidatingWebhookConfiguration": nil, "MutatingWebhookConfiguration": nil, "Secret": nil,
		"Role":      {"class-7/vmwarden-reaper-dev", "class-7-pods/vmwarden-reaper-dev", "class-8-pods/vmwarden-reaper-dev"},
		"ConfigMap": {"ttlab-dev/vmwarden-config", "class-7/vmwarden-status-dev"},
	} {
		if difference := cmp.Diff(want, names(reaper, kind)); difference != "" {
			t.Errorf("the reaper's release, %s:\n%s", kind, difference)
		}
	}
	if difference := cmp.Diff(configured(t, webhook), configured(t, reaper)); difference != "" {
		t.Errorf("the two releases run with different configurations:\n%s", difference)
	}
}

func TestNobodyMayDoMoreThanItsWork(t *testing.T) {
	objects := render(t, release(newcomer))
	for _, object := range objects {
		if object.GetKind() != "Role" && object.GetKind() != "ClusterRole" {
			continue
		}
		role := find[rbacv1.Role](t, []*unstructured.Unstructured{object}, object.GetKind(), object.GetName())
		for _, rule := range role.Rules {
			for _, list := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
				if slices.Contains(list, "*") {
					t.Errorf("%s %s: %+v", object.GetKind(), object.GetName(), rule)
				}
			}
			if slices.Contains(rule.Resources, "persistentvolumeclaims") && !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%s may %v persistentvolumeclaims", object.GetName(), rule.Verbs)
			}
			if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") || slices.Contains(rule.Verbs, "impersonate") {
				t.Errorf("%s may %v", object.GetName(), rule.Verbs)
			}
			if object.GetKind() == "ClusterRole" && len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%s may %v every %v of the cluster", object.GetName(), rule.Verbs, rule.Resources)
			}
		}
		if strings.Contains(object.GetName(), "reaper") {
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "persistentvolumeclaims") {
					t.Errorf("a reaper has a verb on persistentvolumeclaims")
				}
			}
		}
	}
}

// TestABurstOfBackendsDoesNotStarveTheWebhook: in the level of all other ServiceAccounts creates hold the places that their own reviews wait
// for, and the leader loses its lease meanwhile.
func TestABurstOfBackendsDoesNotStarveTheWebhook(t *testing.T) {
	schema := find[flowcontrolv1.FlowSchema](t, render(t, release(newcomer)), "FlowSchema", "vmwarden-webhook")
	account := flowcontrolv1.ServiceAccountSubject{Namespace: "vmwarden", Name: "vmwarden-webhook"}
	if got := schema.Spec.Rules[0].Subjects; len(got) != 1 || *got[0].ServiceAccount != account {
		t.Errorf("the schema is of %+v, want %+v alone", got, account)
	}
	if level := schema.Spec.PriorityLevelConfiguration.Name; level != "workload-high" {
		t.Errorf("the webhook asks in level %s", level)
	}
	without := release(newcomer)
	without.Set = []string{"webhook.priorityLevel="}
	if left := names(render(t, without), "FlowSchema"); len(left) > 0 {
		t.Errorf("without a level there is %v", left)
	}
}

// TestReviewsMayBeKeptToTheControlPlanesAddresses: whoever reaches the webhook can have places reserved by made-up reviews.
func TestReviewsMayBeKeptToTheControlPlanesAddresses(t *testing.T) {
	from := func(set ...string) []networkingv1.NetworkPolicyPeer {
		objects := render(t, Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: set})
		for _, rule := range find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "vmwarden-webhook").Spec.Ingress {
			if rule.Ports[0].Port.String() == "https" {
				return rule.From
			}
		}
		t.Fatal("no rule is for reviews")
		return nil
	}
	if peers := from(); len(peers) != 0 {
		t.Errorf("by default reviews come from %v, want anywhere", peers)
	}
	want := []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.1/32"}}}
	if diff := cmp.Diff(want, from("networkPolicy.reviewsFrom[0].ipBlock.cidr=192.0.2.1/32")); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
}

// TestItIsASubchartToo renders a chart of the platform's own that has vmwarden as a part.
func TestItIsASubchartToo(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "platform")
	if err := os.CopyFS(filepath.Join(parent, "charts", "vmwarden"), os.DirFS(helm.Dir())); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: platform\nversion: 1.0.0\ndependencies: [{name: vmwarden, version: 0.1.0, condition: vmwarden.enabled}]\n",
		"values.yaml": "global: {region: east}\nvmwarden:\n  enabled: true\n" + strings.ReplaceAll(newcomer, "\n", "\n  "),
	} {
		if err := os.WriteFile(filepath.Join(parent, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rendering, err := helm.Run(t.Context(), "template", "school", parent, "--namespace", "platform", "--kube-version", kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(rendering)
	if err != nil {
		t.Fatal(err)
	}
	find[appsv1.Deployment](t, objects, "Deployment", "school-vmwarden-webhook")
	if reaper := configured(t, objects).Environments[0].Reaper; reaper.Name != "school-vmwarden-reaper-prod" || reaper.Namespace != "platform" {
		t.Errorf("prod's reaper is %+v", reaper)
	}
}
