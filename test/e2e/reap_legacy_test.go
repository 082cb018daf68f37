package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// openAsBefore opens a session as the backend did before the environment label, and before vmwarden, which would stamp it.
func openAsBefore(t *testing.T, session string, labels bool) {
	t.Helper()
	for _, file := range []string{backend.CloudInitSecret, backend.VMContainerDisk} {
		made := object(t, file, backend.Lesson{Session: session}, withLabel("ttlab.io/env", ""))
		if !labels {
			made.SetLabels(nil)
		}
		if _, err := shared.AdminBackend.CreateObject(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if labels {
			continue
		}
		t.Cleanup(func() {
			// Nothing but its name tells that it is of the lab.
			err := clients(t).CoreV1().Secrets(lab.VMNamespace).Delete(contextAfter(t), backend.Lesson{Session: session}.VMName()+"-cloudinit", metav1.DeleteOptions{})
			if err := ignoreNotFound(err); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMachinesFromBeforeTheEnvironmentLabelGoByTheirOwnRowAlone(t *testing.T) {
	clean(t)
	ended, runs, unknown, bare := sessionID('i', 1), sessionID('i', 2), sessionID('i', 3), sessionID('i', 4)
	for _, session := range []string{ended, runs, unknown} {
		openAsBefore(t, session, true)
	}
	openAsBefore(t, bare, false)
	insert(t, "prod", expired(ended), running(runs), expired(bare))
	comeOfAge(t, bare)
	document, run := reapjob(t, "prod", "run")
	expectExit(t, run, reap.ExitClean)
	if got := results(document); len(got) != 2 || document.Summary[reap.Expired].Done != 2 {
		t.Errorf("items = %v, want the two expired ones", got)
	}
	expectLeft(t, runs, unknown)
	if secretExists(t, backend.Lesson{Session: bare}.VMName()+"-cloudinit") {
		t.Error("the Secret that is the session's by its name alone is left")
	}
	expectStatus(t, "prod", runs, "running")
	if !slices.ContainsFunc(document.Notices, func(n reap.DocumentNotice) bool { return strings.Contains(n.Reason, "owner is not guessed") }) {
		t.Errorf("notices = %+v, want one about the machine without an environment", document.Notices)
	}
}

// TestASecretIsDeletedByItsNameOnlyIfNobodyElseClaimsIt leaves Secrets of the template's name behind whose virtual machine is gone.
func TestASecretIsDeletedByItsNameOnlyIfNobodyElseClaimsIt(t *testing.T) {
	clean(t)
	core := clients(t).CoreV1().Secrets(lab.VMNamespace)
	cases := []struct {
		session string
		labels  map[string]string
		goes    bool
	}{
		{sessionID('j', 1), nil, true},
		{sessionID('j', 2), map[string]string{"ttlab.io/lab": "true", "ttlab.io/env": "prod"}, true},
		{sessionID('j', 3), map[string]string{"ttlab.io/env": "dev"}, false},
		{sessionID('j', 4), map[string]string{"ttlab.io/session": sessionID('j', 9)}, false},
	}
	for _, c := range cases {
		name := backend.Lesson{Session: c.session}.VMName() + "-cloudinit"
		if _, err := core.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := ignoreNotFound(core.Delete(contextAfter(t), name, metav1.DeleteOptions{})); err != nil {
				t.Fatal(err)
			}
		})
		insert(t, "prod", expired(c.session))
	}
	_, err := core.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry-cloudinit"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.Delete(contextAfter(t), "registry-cloudinit", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	_, run := reapjob(t, "prod", "run")
	for _, c := range cases {
		if got := secretExists(t, backend.Lesson{Session: c.session}.VMName()+"-cloudinit"); got == c.goes {
			t.Errorf("the Secret with labels %v exists: %t", c.labels, got)
		}
		expectStatus(t, "prod", c.session, "expired")
	}
	expectExit(t, run, reap.ExitClean)
	if !secretExists(t, "registry-cloudinit") {
		t.Error("a Secret of nobody's name is gone")
	}
}

func TestNoRoleOfOursHasARightOnVolumes(t *testing.T) {
	for _, namespace := range []string{lab.VMNamespace, lab.PodNamespace} {
		roles, err := clients(t).RbacV1().Roles(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, role := range roles.Items {
			if !strings.HasPrefix(role.Name, "vmwarden-") {
				continue
			}
			seen++
			for _, rule := range role.Rules {
				expectNoVolumes(t, role.Name, rule)
			}
		}
		if seen == 0 {
			t.Errorf("namespace %s has none of our Roles", namespace)
		}
	}
}

func expectNoVolumes(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	for _, resource := range rule.Resources {
		volumes := resource == "*" || strings.HasPrefix(resource, "persistentvolume") || strings.HasPrefix(resource, "datavolume")
		// The webhook looks a disk's labels up before it lets it be attached.
		looksOnly := strings.HasPrefix(role, "vmwarden-webhook") && slices.Equal(rule.Verbs, []string{"get"})
		if volumes && !looksOnly {
			t.Errorf("Role %s has %v on %s", role, rule.Verbs, resource)
		}
	}
	if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Verbs, "deletecollection") {
		t.Errorf("Role %s has %v on all of %v", role, rule.Verbs, rule.APIGroups)
	}
}
