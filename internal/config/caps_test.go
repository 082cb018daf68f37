package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestABudgetIsAQuantityOrUnlimited(t *testing.T) {
	for written, want := range map[string]string{"16": `"16"`, `"1500m"`: `"1500m"`, "48Gi": `"48Gi"`, "0": `"0"`, "unlimited": `"unlimited"`} {
		c, err := Parse([]byte(minimal + "caps: {cpu: " + written + "}\n"))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		got, err := json.Marshal(c.Caps.CPU)
		if err != nil || string(got) != want {
			t.Errorf("caps.cpu %s is logged as %s (%v), want %s", written, got, err, want)
		}
	}
}

func TestTheDefaultCapsAreTheDesigns(t *testing.T) {
	c, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if c.Caps.Session != 3 || c.Caps.CPU.Quantity.String() != "16" || c.Caps.Memory.Quantity.String() != "48Gi" || c.Environments[0].Cap != nil {
		t.Errorf("caps = %+v, environment's = %v; want 3 a session, 16 CPUs, 48Gi and none", c.Caps, c.Environments[0].Cap)
	}
}

func TestWrongCapsAreNamed(t *testing.T) {
	for written, path := range map[string]string{
		"session: 0": "caps.session", "cpu: -1": "caps.cpu", "memory: -1Gi": "caps.memory", "cpu: lots": "quantity",
		"kubevirt: {cpuAllocationRatio: 0}": "caps.kubevirt.cpuAllocationRatio", "kubevirt: {memoryOvercommitPercent: 0}": "caps.kubevirt.memoryOvercommitPercent",
		"kubevirt: {additionalOverheadRatio: 0.5}": "caps.kubevirt.additionalOverheadRatio",
	} {
		_, err := Parse([]byte(minimal + "caps: {" + written + "}\n"))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names %s", written, err, path)
		}
	}
	_, err := Parse([]byte(strings.Replace(minimal, "- name: dev", "- name: dev\n  cap: -1", 1)))
	if err == nil || !strings.Contains(err.Error(), "environments[1].cap") {
		t.Errorf("an environment's negative cap: %v", err)
	}
}
