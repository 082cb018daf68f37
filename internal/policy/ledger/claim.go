package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Tenant is whose a virtual machine is. Either part may be empty, for an object that does not say.
type Tenant struct {
	Environment string `json:"environment,omitempty"`
	Session     string `json:"session,omitempty"`
}

// Need is what a virtual machine's launcher Pod requests.
type Need struct {
	MilliCPU int64 `json:"milliCPU,omitempty"`
	// Memory is in bytes.
	Memory int64 `json:"memory,omitempty"`
}

func (n Need) plus(other Need) Need {
	return Need{MilliCPU: n.MilliCPU + other.MilliCPU, Memory: n.Memory + other.Memory}
}

func (n Need) most(other Need) Need {
	return Need{MilliCPU: max(n.MilliCPU, other.MilliCPU), Memory: max(n.Memory, other.Memory)}
}

// beyond is what n asks on top of other.
func (n Need) beyond(other Need) Need {
	return Need{MilliCPU: max(n.MilliCPU-other.MilliCPU, 0), Memory: max(n.Memory-other.Memory, 0)}
}

// Occupant is an object that holds the place of its name.
type Occupant struct {
	Name string
	UID  types.UID
	Tenant
	Need
	// Deadline is when the object is due to go; zero where that is not known.
	Deadline time.Time
}

// Claim asks for a place for a virtual machine that is about to be created.
type Claim struct {
	Name string
	UID  types.UID
	Tenant
	Need
	// DryRun asks what the answer would be and takes no place.
	DryRun bool
}

// Limits are the caps of one namespace. A nil limit is one that is not set.
type Limits struct {
	// VMs is the number of places.
	VMs int
	// Environments are the places of single environments.
	Environments map[string]int
	// Session is the number of places of every session.
	Session *int
	// MilliCPU and Memory (bytes) are the budgets that all launchers share.
	MilliCPU *int64
	Memory   *int64
}
