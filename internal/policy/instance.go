package policy

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/lab"
)

// instanceDirect denies instances, replica sets of instances and pools that are created around a virtual machine: a way around
// every rule on virtual machines.
func instanceDirect(_ lab.Contract, f Facts) []Violation {
	if f.Operation != Create || f.Requester.Kind == lab.TrustedController || f.Requester.Kind == lab.Admin {
		return nil
	}
	return []Violation{{
		Code:   InstanceDirect,
		Found:  fmt.Sprintf("%s %q would be created by %s", f.Kind, f.Name, f.Requester.Username),
		Remedy: "create a VirtualMachine; KubeVirt makes its instance",
	}}
}
