package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/lab"
)

// right is what the chart gives one of its accounts: one verb on one resource.
type right struct {
	user, verb string
	// resource is resource.group, or resource/subresource.group.
	resource string
	// namespace is empty for what is given in the whole cluster, name where it is given on all objects.
	namespace, name string
}

func (r right) String() string {
	where := "in " + r.namespace
	if r.namespace == "" {
		where = "in the cluster"
	}
	if r.name != "" {
		where = "named " + r.name + " " + where
	}
	return fmt.Sprintf("%s: %s %s %s", strings.TrimPrefix(r.user, "system:serviceaccount:"), r.verb, r.resource, where)
}

// covers tells whether a request is one that the right allows.
func (r right) covers(asked right) bool {
	return r.user == asked.user && r.verb == asked.verb && r.resource == asked.resource &&
		(r.namespace == "" || r.namespace == asked.namespace) && (r.name == "" || r.name == asked.name)
}

// grantedRights are all rights of vmwarden's accounts, one verb and resource each, as the API server has them.
func grantedRights(t *testing.T) []right {
	t.Helper()
	rbac := clients(t).RbacV1()
	var granted []right
	bindings, err := rbac.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range bindings.Items {
		for _, user := range boundAccounts(binding.Subjects) {
			if binding.RoleRef.Kind != "Role" {
				t.Fatalf("RoleBinding %s/%s gives %s a %s", binding.Namespace, binding.Name, user, binding.RoleRef.Kind)
			}
			role, err := rbac.Roles(binding.Namespace).Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			granted = append(granted, rightsOf(user, binding.Namespace, role.Rules)...)
		}
	}
	clusterBindings, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range clusterBindings.Items {
		for _, user := range boundAccounts(binding.Subjects) {
			role, err := rbac.ClusterRoles().Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			granted = append(granted, rightsOf(user, "", role.Rules)...)
		}
	}
	return granted
}

// boundAccounts are those of the subjects that are vmwarden's.
func boundAccounts(subjects []rbacv1.Subject) []string {
	var users []string
	for _, subject := range subjects {
		user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
		if subject.Kind == rbacv1.ServiceAccountKind && slices.Contains(lab.Accounts(), user) {
			users = append(users, user)
		}
	}
	return users
}

func rightsOf(user, namespace string, rules []rbacv1.PolicyRule) []right {
	var rights []right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, right{user, verb, resource + "." + group, namespace, name})
					}
				}
			}
		}
	}
	return rights
}

// asked is a request of one of vmwarden's accounts, and whether it had the right to it.
type asked struct {
	right
	forbidden bool
}

// auditLength is where the audit log ends now.
func auditLength(t *testing.T) int64 {
	t.Helper()
	information, err := os.Stat(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return information.Size()
}

// askedSince reads from the audit log what vmwarden's accounts asked for after it had this length. What is no resource, such as discovery, is
// everybody's.
func askedSince(t *testing.T, length int64) []asked {
	t.Helper()
	file, err := os.Open(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(length, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var all []asked
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var entry struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef *struct {
				APIGroup    string `json:"apiGroup"`
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Namespace   string `json:"namespace"`
				Name        string `json:"name"`
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if entry.ObjectRef == nil || !slices.Contains(lab.Accounts(), entry.User.Username) {
			continue
		}
		resource := entry.ObjectRef.Resource
		if entry.ObjectRef.Subresource != "" {
			resource += "/" + entry.ObjectRef.Subresource
		}
		all = append(all, asked{
			right: right{
				entry.User.Username, entry.Verb, resource + "." + entry.ObjectRef.APIGroup, entry.ObjectRef.Namespace, entry.ObjectRef.Name,
			},
			forbidden: entry.Annotations["authorization.k8s.io/decision"] == "forbid",
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
