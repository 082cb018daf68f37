package lab

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// serviceAccountPrefix starts the user name that kube-apiserver gives to every ServiceAccount token.
const serviceAccountPrefix = "system:serviceaccount:"

// ServiceAccount is a ServiceAccount's place in the cluster. Both parts are always compared: accounts of one name exist in
// many namespaces.
type ServiceAccount struct {
	Namespace string
	Name      string
}

// Username is the user name under which the ServiceAccount signs in at kube-apiserver.
func (s ServiceAccount) Username() string {
	return serviceAccountPrefix + s.Namespace + ":" + s.Name
}

// ParseServiceAccount reads a user name such as "system:serviceaccount:ttlab-prod:backend". It reports false for every other
// kind of user and for a name with a part missing, empty or malformed.
func ParseServiceAccount(username string) (ServiceAccount, bool) {
	rest, found := strings.CutPrefix(username, serviceAccountPrefix)
	if !found {
		return ServiceAccount{}, false
	}
	namespace, name, found := strings.Cut(rest, ":")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ServiceAccount{}, false
	}
	return ServiceAccount{Namespace: namespace, Name: name}, true
}

// RequesterKind says what somebody who asks something of kube-apiserver is to a lab.
type RequesterKind string

// The kinds of requester. Every identity is exactly one of them.
const (
	Backend           RequesterKind = "Backend"
	Reaper            RequesterKind = "Reaper"
	TrustedController RequesterKind = "TrustedController"
	Admin             RequesterKind = "Admin"
	Unknown           RequesterKind = "Unknown"
)

// Requester is an identity, classified.
type Requester struct {
	Kind RequesterKind
	// Environment is set for a Backend and a Reaper only.
	Environment string
	Username    string
}

// ActsForEnvironment tells whether the requester belongs to one environment and is bound to its objects.
func (r Requester) ActsForEnvironment() bool {
	return r.Kind == Backend || r.Kind == Reaper
}

// Identities knows who is who.
type Identities struct {
	byAccount   map[ServiceAccount]Requester
	adminUsers  sets.Set[string]
	adminGroups sets.Set[string]
}

// NewIdentities makes an Identities in which users and groups are admins.
func NewIdentities(adminUsers, adminGroups []string) *Identities {
	return &Identities{
		byAccount:   map[ServiceAccount]Requester{},
		adminUsers:  sets.New(adminUsers...),
		adminGroups: sets.New(adminGroups...),
	}
}

// Add makes the account a requester of the given kind; environment is empty for a TrustedController.
func (i *Identities) Add(account ServiceAccount, kind RequesterKind, environment string) {
	i.byAccount[account] = Requester{Kind: kind, Environment: environment, Username: account.Username()}
}

// Classify matches a user name and its groups, as kube-apiserver authenticated them. A configured ServiceAccount is what the
// configuration says even where a group of it is an admin group: a backend must not become an admin by a group.
func (i *Identities) Classify(username string, groups []string) Requester {
	if account, ok := ParseServiceAccount(username); ok {
		if requester, known := i.byAccount[account]; known {
			return requester
		}
	}
	if i.adminUsers.Has(username) || i.adminGroups.HasAny(groups...) {
		return Requester{Kind: Admin, Username: username}
	}
	return Requester{Kind: Unknown, Username: username}
}
