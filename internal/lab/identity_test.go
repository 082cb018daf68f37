package lab

import "testing"

func testIdentities() *Identities {
	identities := NewIdentities([]string{"alice"}, []string{"system:masters", "system:serviceaccounts:ttlab-dev"})
	identities.Add(ServiceAccount{Namespace: "ttlab-prod", Name: "backend"}, Backend, "prod")
	identities.Add(ServiceAccount{Namespace: "ttlab-dev", Name: "backend"}, Backend, "dev")
	identities.Add(ServiceAccount{Namespace: "ttlab-prod", Name: "reaper"}, Reaper, "prod")
	identities.Add(ServiceAccount{Namespace: "kube-system", Name: "generic-garbage-collector"}, TrustedController, "")
	return identities
}

func TestClassifyMatchesNamespaceAndNameExactly(t *testing.T) {
	for _, c := range []struct {
		username    string
		groups      []string
		kind        RequesterKind
		environment string
	}{
		{"system:serviceaccount:ttlab-prod:backend", nil, Backend, "prod"},
		{"system:serviceaccount:ttlab-dev:backend", nil, Backend, "dev"},
		{"system:serviceaccount:ttlab-prod:reaper", nil, Reaper, "prod"},
		{"system:serviceaccount:kube-system:generic-garbage-collector", nil, TrustedController, ""},
		{"system:serviceaccount:other:backend", nil, Unknown, ""},
		{"system:serviceaccount:ttlab-prod:backend2", nil, Unknown, ""},
		{"system:serviceaccount:ttlab-prod:", nil, Unknown, ""},
		{"system:serviceaccount::backend", nil, Unknown, ""},
		{"system:serviceaccount:ttlab-prod", nil, Unknown, ""},
		{"system:serviceaccount:x", nil, Unknown, ""},
		{"system:serviceaccount:ttlab-prod:backend:x", nil, Unknown, ""},
		{"System:serviceaccount:ttlab-prod:backend", nil, Unknown, ""},
		{" system:serviceaccount:ttlab-prod:backend", nil, Unknown, ""},
		{"", nil, Unknown, ""},
		{"bob", []string{"system:authenticated"}, Unknown, ""},
		{"bob", []string{"system:masters"}, Admin, ""},
		{"alice", nil, Admin, ""},
	} {
		got := testIdentities().Classify(c.username, c.groups)
		if got.Kind != c.kind || got.Environment != c.environment || got.Username != c.username {
			t.Errorf("Classify(%q, %v) = %+v, want %s of %q", c.username, c.groups, got, c.kind, c.environment)
		}
	}
}

func TestClassifyLetsNoGroupMakeABackendAnAdmin(t *testing.T) {
	got := testIdentities().Classify("system:serviceaccount:ttlab-dev:backend", []string{"system:serviceaccounts:ttlab-dev"})
	if got.Kind != Backend {
		t.Errorf("a backend in an admin group is %s, want %s", got.Kind, Backend)
	}
}
