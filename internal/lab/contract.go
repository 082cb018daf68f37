// Package lab holds the words of a lab: who acts, which labels and annotations mark an object, what a session is and how long
// a virtual machine may live. Admission and reaping both speak in these words and share nothing else.
package lab

import "slices"

// Contract is what admission and reaping agree on, read once from the configuration.
type Contract struct {
	// VMNamespace is the one namespace that all environments' virtual machines share.
	VMNamespace string
	// PodNamespaces are the namespaces of sessions that run as a Pod.
	PodNamespaces []string
	Labels        Labels
	SessionIDs    SessionIDFormat
	Lifetimes     Lifetimes
	// Environments are the names of all environments, in the order of the configuration.
	Environments []string
	Identities   *Identities
}

// HasEnvironment tells whether name is one of the environments.
func (c Contract) HasEnvironment(name string) bool {
	return slices.Contains(c.Environments, name)
}
