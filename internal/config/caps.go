package config

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WhenUncertain says what the cap answers when the virtual machines cannot be counted.
type WhenUncertain string

const (
	// DenyWhenUncertain refuses the virtual machine.
	DenyWhenUncertain WhenUncertain = "Deny"
	// AllowWhenUncertain admits it and leaves the bound to the namespace's ResourceQuota.
	AllowWhenUncertain WhenUncertain = "Allow"
)

// Caps bound the virtual machines of the VM namespace.
type Caps struct {
	// VMs is the greatest number of virtual machines in the VM namespace.
	VMs int `json:"vms"`
	// Session is the greatest number of virtual machines of one session.
	Session int `json:"session"`
	// CPU and Memory are what all launcher Pods of the namespace may request: a quantity, or "unlimited".
	CPU    Budget `json:"cpu"`
	Memory Budget `json:"memory"`
	// KubeVirt repeats those settings of the KubeVirt resource that change what a launcher Pod requests.
	KubeVirt KubeVirt `json:"kubevirt"`
	// Reservation is how long an admitted virtual machine holds its place before it shows in a list. Exactness needs it to be
	// longer than kube-apiserver can take to finish a request (--request-timeout, 60s by default).
	Reservation metav1.Duration `json:"reservation"`
	// WhenUncertain is Deny (default) or Allow.
	WhenUncertain WhenUncertain `json:"whenUncertain"`
}

// KubeVirt repeats settings of spec.configuration of the KubeVirt resource.
type KubeVirt struct {
	// CPUAllocationRatio is developerConfiguration.cpuAllocationRatio.
	CPUAllocationRatio int `json:"cpuAllocationRatio"`
	// MemoryOvercommitPercent is developerConfiguration.memoryOvercommit.
	MemoryOvercommitPercent int `json:"memoryOvercommitPercent"`
	// AdditionalOverheadRatio is additionalGuestMemoryOverheadRatio.
	AdditionalOverheadRatio resource.Quantity `json:"additionalOverheadRatio"`
	// SerialConsoleLogDisabled tells that virtualMachineOptions.disableSerialConsoleLog is set.
	SerialConsoleLogDisabled bool `json:"serialConsoleLogDisabled"`
}

// unlimited is how a budget is switched off. A word: zero is a budget too, and a null is what Helm takes for "use the default".
const unlimited = "unlimited"

// Budget is a quantity or "unlimited".
type Budget struct {
	Unlimited bool
	Quantity  resource.Quantity
}

// UnmarshalJSON reads a quantity or the word.
func (b *Budget) UnmarshalJSON(content []byte) error {
	if string(content) == `"`+unlimited+`"` {
		*b = Budget{Unlimited: true}
		return nil
	}
	*b = Budget{}
	if err := json.Unmarshal(content, &b.Quantity); err != nil {
		return fmt.Errorf("a budget is a quantity such as 16 or 48Gi, or %q: %w", unlimited, err)
	}
	return nil
}

// MarshalJSON writes a quantity or the word.
func (b Budget) MarshalJSON() ([]byte, error) {
	if b.Unlimited {
		return json.Marshal(unlimited)
	}
	return json.Marshal(b.Quantity)
}

func defaultCaps() Caps {
	return Caps{
		VMs:     8,
		Session: 3,
		CPU:     Budget{Quantity: resource.MustParse("16")},
		Memory:  Budget{Quantity: resource.MustParse("48Gi")},
		// KubeVirt's own defaults.
		KubeVirt: KubeVirt{CPUAllocationRatio: 10, MemoryOvercommitPercent: 100, AdditionalOverheadRatio: resource.MustParse("1")},
		// kube-apiserver ends a request after 60 s; etcd may still apply a write that was on its way for some seconds more.
		Reservation:   metav1.Duration{Duration: 75 * time.Second},
		WhenUncertain: DenyWhenUncertain,
	}
}

func validateCaps(caps Caps, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if caps.VMs < 0 {
		faults = append(faults, field.Invalid(path.Child("vms"), caps.VMs, "must not be negative; 0 closes the namespace to new virtual machines"))
	}
	if caps.Session < 1 {
		faults = append(faults, field.Invalid(path.Child("session"), caps.Session, "must be at least 1"))
	}
	for _, budget := range []struct {
		name string
		Budget
	}{{"cpu", caps.CPU}, {"memory", caps.Memory}} {
		if !budget.Unlimited && budget.Quantity.Sign() < 0 {
			faults = append(faults, field.Invalid(path.Child(budget.name), budget.Quantity.String(), `must not be negative; "unlimited" switches it off`))
		}
	}
	faults = append(faults, validateKubeVirt(caps.KubeVirt, path.Child("kubevirt"))...)
	faults = append(faults, validateAtLeast(caps.Reservation.Duration, time.Second, path.Child("reservation"))...)
	if choices := []WhenUncertain{DenyWhenUncertain, AllowWhenUncertain}; !sets.New(choices...).Has(caps.WhenUncertain) {
		faults = append(faults, field.NotSupported(path.Child("whenUncertain"), caps.WhenUncertain, choices))
	}
	return faults
}

func validateKubeVirt(kubevirt KubeVirt, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if kubevirt.CPUAllocationRatio < 1 {
		faults = append(faults, field.Invalid(path.Child("cpuAllocationRatio"), kubevirt.CPUAllocationRatio, "must be at least 1"))
	}
	if kubevirt.MemoryOvercommitPercent < 10 {
		faults = append(faults, field.Invalid(path.Child("memoryOvercommitPercent"), kubevirt.MemoryOvercommitPercent, "must be at least 10"))
	}
	if kubevirt.AdditionalOverheadRatio.Cmp(resource.MustParse("1")) < 0 {
		faults = append(faults, field.Invalid(path.Child("additionalOverheadRatio"), kubevirt.AdditionalOverheadRatio.String(), "must be at least 1"))
	}
	return faults
}

// validateEnvironmentCap checks the optional cap of one environment.
func validateEnvironmentCap(places *int, path *field.Path) field.ErrorList {
	if places != nil && *places < 0 {
		return field.ErrorList{field.Invalid(path, *places, "must not be negative; 0 closes the namespace to this environment")}
	}
	return nil
}
