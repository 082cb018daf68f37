package e2e

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/kubevirt/stack"
	"github.com/ttlab/vmwarden/test/lab"
)

// grantAll gives a user every right on KubeVirt's resources until the test ends.
func grantAll(t *testing.T, user string) {
	t.Helper()
	bindings := shared.Clients.RbacV1().ClusterRoleBindings()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-grant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubevirt.io:admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.AwaitAccess(t.Context(), shared.Clients, true, user, authorizationv1.ResourceAttributes{
		Namespace: lab.VMNamespace, Verb: "create", Group: "kubevirt.io", Resource: "virtualmachines",
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(stack.After(t), binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
