package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/lab"
)

// grantPatch lets everybody who signs in do everything with virtual machines and their like, for the length of the test, as a
// careless admin might: then only vmwarden stands between the environments.
func grantPatch(t *testing.T) {
	t.Helper()
	grant(t, "careless", "*", "virtualmachines", "virtualmachines/status", "virtualmachineinstances", "virtualmachineinstancereplicasets", "virtualmachinepools")
}

// awaitGranted waits until everybody who signs in may patch these resources.
func awaitGranted(t *testing.T, group string, resources ...string) {
	t.Helper()
	for _, name := range resources {
		resource, subresource, _ := strings.Cut(name, "/")
		awaitAccess(t, true, "anybody", authorizationv1.ResourceAttributes{
			Namespace: lab.VMNamespace, Verb: "patch", Group: group, Resource: resource, Subresource: subresource,
		})
	}
}

func awaitAccess(t *testing.T, allowed bool, user string, wanted authorizationv1.ResourceAttributes) {
	t.Helper()
	if err := controlplane.AwaitAccess(contextAfter(t), clients(t), allowed, user, wanted); err != nil {
		t.Fatal(err)
	}
}

// grant lets everybody who signs in do everything with some resources of the VM namespace until the test ends.
func grant(t *testing.T, name, group string, resources ...string) {
	t.Helper()
	rbac := clients(t).RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}
	if _, err := rbac.Roles(lab.VMNamespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(lab.VMNamespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGranted(t, strings.Replace(group, "*", "kubevirt.io", 1), resources...)
	t.Cleanup(func() {
		ctx := contextAfter(t)
		if err := rbac.RoleBindings(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := rbac.Roles(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoIsNotInTheConfigurationIsRefusedWhateverItsNameLooksLike(t *testing.T) {
	clean(t)
	grantPatch(t)
	open(t, "prod", sessionID('g', 1))
	name := backend.Lesson{Session: sessionID('g', 1)}.VMName()
	for _, user := range []string{
		"alice", "system:serviceaccount:x", "system:serviceaccount:ttlab-prod", "system:serviceaccount:ttlab-prod:",
		"system:serviceaccount:other:backend", "system:serviceaccount:ttlab-prod:backend:x",
	} {
		config, err := shared.ControlPlane.UserConfig(user)
		if err != nil {
			t.Fatal(err)
		}
		stranger, err := backend.New("prod", config)
		if err != nil {
			t.Fatal(err)
		}
		// The careless Role is a watch away from the authorizer.
		var refusal error
		await(t, user+" is let through to admission", func(ctx context.Context) error {
			refusal = stranger.Machines(lab.VMNamespace).Delete(ctx, name, metav1.DeleteOptions{})
			return expectReview(refusal)
		})
		expectDenied(t, user+" deletes", refusal, "RequesterUnknown")
		_, err = stranger.CreateObject(t.Context(), object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('g', 2), Environment: "prod"}), metav1.CreateOptions{})
		expectDenied(t, user+" creates", err, "RequesterUnknown")
	}
	if !exists(t, name) {
		t.Error("the machine is gone")
	}
}

// expectReview is an error while the answer is not vmwarden's.
func expectReview(err error) error {
	if len(backend.DenialCodes(err)) == 0 {
		return fmt.Errorf("not an answer of vmwarden: %w", err)
	}
	return nil
}
