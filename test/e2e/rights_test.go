package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
	"github.com/ttlab/vmwarden/test/process"
)

// neverAsked are the rights that no request uses, and why they are given all the same.
var neverAsked = map[string]string{
	"vmwarden:vmwarden-webhook: delete secrets. in lab-vms":                          "the admission plugin OwnerReferencesPermissionEnforcement asks it of whoever sets an owner",
	"vmwarden:vmwarden-webhook: delete services. in lab-vms":                         "the same",
	"vmwarden:vmwarden-webhook: delete networkpolicies.networking.k8s.io in lab-vms": "the same",
}

// TestEveryRightThatTheChartGivesIsUsedAndNoneIsMissing lives through all that vmwarden does, and compares what its accounts may do with what the API
// server's audit log has seen them do.
func TestEveryRightThatTheChartGivesIsUsedAndNoneIsMissing(t *testing.T) {
	clean(t)
	began := auditLength(t)
	takeLeaseAway(t)
	reconfigure(t, lab.Config)
	for i, environment := range lab.Environments {
		letMachinesBeMade(t, environment, i)
		letSessionsEnd(t, environment, i)
	}
	letReviewsBeDenied(t)
	kubeconfig := webhookKubeconfig(t)
	letPlacesBeCounted(t, kubeconfig)
	letCertificateBeKept(t, kubeconfig)

	requests := askedSince(t, began)
	var missing []string
	for _, request := range requests {
		if request.forbidden {
			missing = append(missing, request.String())
		}
	}
	slices.Sort(missing)
	for _, request := range slices.Compact(missing) {
		t.Errorf("forbidden: %s", request)
	}
	granted := grantedRights(t)
	if len(granted) < 20*len(lab.Accounts())/2 {
		t.Errorf("only %d rights are given to %v: they are not found", len(granted), lab.Accounts())
	}
	excused := map[string]bool{}
	for _, right := range granted {
		used := slices.ContainsFunc(requests, func(request asked) bool { return right.covers(request.right) })
		_, excusable := neverAsked[right.String()]
		excused[right.String()] = excusable
		if used == excusable {
			t.Errorf("used: %t, in the list of those that are not: %t: %s", used, excusable, right)
		}
	}
	for right := range neverAsked {
		if !excused[right] {
			t.Errorf("%s is in the list of rights that are not used, and is not given", right)
		}
	}
}

// takeLeaseAway lets the replicas that start next find no lease, as those of a new installation.
func takeLeaseAway(t *testing.T) {
	t.Helper()
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	err := clients(t).CoordinationV1().Leases("vmwarden").Delete(t.Context(), "vmwarden-webhook", metav1.DeleteOptions{})
	if err := ignoreNotFound(err); err != nil {
		t.Fatal(err)
	}
}

// letMachinesBeMade has a session of several machines with all that belongs to them, and machines of every kind of disk and size.
func letMachinesBeMade(t *testing.T, environment string, i int) {
	t.Helper()
	group := sessionID('w', 10*i+1)
	lead := backend.Lesson{Session: group, Environment: environment}
	open(t, environment, group)
	insert(t, environment, expired(group))
	member := lead
	member.Member = 1
	if _, err := shared.Backends[environment].Create(t.Context(), backend.GroupMember, member); err != nil {
		t.Fatal(err)
	}
	awaitOwners(t, lead.VMName()+"-cloudinit", lead.VMName())
	await(t, "the group's Service and NetworkPolicy have an owner", func(ctx context.Context) error {
		service, err := clients(t).CoreV1().Services(lab.VMNamespace).Get(ctx, lead.VMName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		policy, err := clients(t).NetworkingV1().NetworkPolicies(lab.VMNamespace).Get(ctx, lead.VMName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(service.OwnerReferences) == 0 || len(policy.OwnerReferences) == 0 {
			return fmt.Errorf("owners are %v and %v", service.OwnerReferences, policy.OwnerReferences)
		}
		return nil
	})
	// Whether these are admitted is other tests' matter: what they refer to is looked up.
	for n, file := range []string{backend.VMGolden, backend.VMDataVolume} {
		lesson := backend.Lesson{Session: sessionID('w', 10*i+2+n), Environment: environment}
		if _, err := shared.Backends[environment].CreateObject(t.Context(), object(t, file, lesson), metav1.CreateOptions{}); err != nil {
			t.Logf("%s: %v", file, err)
		}
	}
	for n, kind := range []string{"VirtualMachineInstancetype", "VirtualMachineClusterInstancetype"} {
		lesson := backend.Lesson{Session: sessionID('w', 10*i+4+n), Environment: environment}
		sized := object(t, backend.VMContainerDisk, lesson, func(o *unstructured.Unstructured) {
			setNested(t, o, kind, "spec", "instancetype", "kind")
			setNested(t, o, "large", "spec", "instancetype", "name")
			setNested(t, o, "large-1", "spec", "instancetype", "revisionName")
		})
		if _, err := shared.Backends[environment].CreateObject(t.Context(), sized, metav1.CreateOptions{}); err != nil {
			t.Logf("of a %s: %v", kind, err)
		}
	}
}

// letSessionsEnd has an ended session, in a group and in a Pod, and orphans of every kind, and one pass.
func letSessionsEnd(t *testing.T, environment string, i int) {
	t.Helper()
	pod := sessionID('w', 10*i+6)
	lesson := backend.Lesson{Session: pod, Environment: environment}
	if _, err := shared.Backends[environment].Create(t.Context(), backend.LabPod, lesson); err != nil {
		t.Fatal(err)
	}
	ended := expired(pod)
	ended.runtime, ended.vmName = "pod", ""
	insert(t, environment, ended)

	labels := map[string]string{"ttlab.io/lab": "true", "ttlab.io/session": sessionID('w', 10*i+7), "ttlab.io/env": environment}
	around := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "around-" + environment, Labels: labels}}
	if _, err := shared.AdminBackend.Instances(lab.VMNamespace).Create(t.Context(), around, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	left, err := backend.Objects(backend.GroupMember, backend.Lesson{Session: labels["ttlab.io/session"], Environment: environment, Member: 1})
	if err != nil {
		t.Fatal(err)
	}
	var youngest time.Time
	for _, orphan := range left {
		if orphan.GetKind() == "VirtualMachine" {
			continue
		}
		made, err := shared.AdminBackend.CreateObject(t.Context(), orphan, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		youngest = made.GetCreationTimestamp().Time
	}
	await(t, "the orphans come of age", func(context.Context) error {
		// Creation times are whole seconds; the configuration's minimum age is one.
		if age := time.Since(youngest); age < 2*time.Second {
			return fmt.Errorf("they are %s old", age)
		}
		return nil
	})
	_, run := reapjob(t, environment, "run")
	expectExit(t, run, reap.ExitClean)
}

// letReviewsBeDenied has the same denial in both namespaces again and again, until a replica tells of it as one that came again.
func letReviewsBeDenied(t *testing.T) {
	t.Helper()
	theirs := backend.Lesson{Session: sessionID('w', 98), Environment: "prod"}
	account, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "ttlab-dev", "backend")
	if err != nil {
		t.Fatal(err)
	}
	dev := typed(t, account).CoreV1().Pods(lab.PodNamespace)
	for _, denied := range []struct {
		namespace, file string
		remove          func(ctx context.Context, name string, options metav1.DeleteOptions) error
	}{
		{lab.VMNamespace, backend.VMContainerDisk, shared.Backends["dev"].Machines(lab.VMNamespace).Delete},
		{lab.PodNamespace, backend.LabPod, dev.Delete},
	} {
		made, err := shared.Backends["prod"].CreateObject(t.Context(), object(t, denied.file, theirs), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		await(t, "a denial in "+denied.namespace+" comes again", func(ctx context.Context) error {
			expectDenied(t, "dev deletes prod's", denied.remove(ctx, made.GetName(), metav1.DeleteOptions{}), "EnvironmentForeign")
			events, err := clients(t).CoreV1().Events(denied.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + made.GetName()})
			if err != nil {
				return err
			}
			for _, event := range events.Items {
				if event.Count > 1 {
					return nil
				}
			}
			return fmt.Errorf("%d Events tell of it, each once", len(events.Items))
		})
	}
}

// webhookKubeconfig is a file by which a process is the webhook's account, as in its Pod.
func webhookKubeconfig(t *testing.T) string {
	t.Helper()
	account, err := shared.ControlPlane.ServiceAccountConfig(t.Context(), "vmwarden", "vmwarden-webhook")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(path, account); err != nil {
		t.Fatal(err)
	}
	return path
}

// letPlacesBeCounted counts, beside a machine, an instance that a machine left behind, by a process that has watched neither: a replica does the same
// where its watch is behind its list.
func letPlacesBeCounted(t *testing.T, kubeconfig string) {
	t.Helper()
	around := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "around"}}
	if _, err := shared.AdminBackend.Instances(lab.VMNamespace).Create(t.Context(), around, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run, err := shared.Binary(t.Context(), "webhook", "caps", "--config", write(t, "config.yaml", lab.Config), "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	expectExit(t, run, 0)
}

// letCertificateBeKept has a replica that keeps its certificate itself, as the chart runs it by default; the lab's replicas are given theirs.
func letCertificateBeKept(t *testing.T, kubeconfig string) {
	t.Helper()
	restoreTrust(t)
	if err := shared.Webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	arguments := []string{
		"serve", "--config", write(t, "config.yaml", lab.Config), "--kubeconfig", kubeconfig, "--leader-election-namespace", "vmwarden",
		"--cert-secret", "vmwarden/vmwarden-webhook-tls", "--cert-dns-name", "vmwarden-webhook.vmwarden.svc",
	}
	for _, flag := range []string{"--address", "--health-address", "--metrics-address"} {
		port, err := process.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, flag, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		run, err := shared.Binary(ctx, "webhook", arguments...)
		ended <- fmt.Sprintf("%v %s", err, run.Stderr)
	}()
	before := trusted(t)
	await(t, "both configurations trust the new authority, and the Secret holds a certificate", func(ctx context.Context) error {
		select {
		case told := <-ended:
			t.Fatalf("the replica ended: %s", told)
		default:
		}
		secret, err := clients(t).CoreV1().Secrets("vmwarden").Get(ctx, "vmwarden-webhook-tls", metav1.GetOptions{})
		if err != nil {
			return err
		}
		after := trusted(t)
		if len(after[0]) <= len(before[0]) || len(after[1]) <= len(before[1]) || len(secret.Data["tls.crt"]) == 0 {
			return fmt.Errorf("they trust %d and %d bytes, and the Secret has %d keys", len(after[0]), len(after[1]), len(secret.Data))
		}
		return nil
	})
	stop()
	<-ended
}

// trusted are the caBundles of the mutating and of the validating configuration.
func trusted(t *testing.T) [2][]byte {
	t.Helper()
	registration := clients(t).AdmissionregistrationV1()
	mutating, err := registration.MutatingWebhookConfigurations().Get(contextAfter(t), "vmwarden", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	validating, err := registration.ValidatingWebhookConfigurations().Get(contextAfter(t), "vmwarden", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [2][]byte{mutating.Webhooks[0].ClientConfig.CABundle, validating.Webhooks[0].ClientConfig.CABundle}
}

// restoreTrust takes what the replica adds away again when the test ends.
func restoreTrust(t *testing.T) {
	t.Helper()
	before := trusted(t)
	t.Cleanup(func() {
		ctx := contextAfter(t)
		registration := clients(t).AdmissionregistrationV1()
		patch := func(bundle []byte) []byte {
			return encodeJSON(t, []map[string]any{{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}})
		}
		_, mutating := registration.MutatingWebhookConfigurations().Patch(ctx, "vmwarden", types.JSONPatchType, patch(before[0]), metav1.PatchOptions{})
		_, validating := registration.ValidatingWebhookConfigurations().Patch(ctx, "vmwarden", types.JSONPatchType, patch(before[1]), metav1.PatchOptions{})
		_, secret := clients(t).CoreV1().Secrets("vmwarden").Patch(ctx, "vmwarden-webhook-tls", types.JSONPatchType,
			encodeJSON(t, []map[string]any{{"op": "remove", "path": "/data"}}), metav1.PatchOptions{})
		if err := errors.Join(mutating, validating, secret); err != nil {
			t.Error(err)
		}
	})
}
