package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const minimal = `
apiVersion: config.vmwarden.io/v1alpha1
kind: WardenConfig
vmNamespace: lab-vms
environments:
- name: prod
  backends: [{namespace: ttlab-prod, name: backend}]
  reaper: {namespace: ttlab-prod, name: reaper}
- name: dev
  backends: [{namespace: ttlab-dev, name: backend}]
`

func TestParseGivesTheMinimalFileTheDesignsDefaults(t *testing.T) {
	c, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if c.Caps.VMs != 8 || c.Caps.WhenUncertain != DenyWhenUncertain {
		t.Errorf("caps = %+v, want 8 and Deny", c.Caps)
	}
	if got, want := c.Lifetimes.Ceiling.Duration+c.Lifetimes.DeadlineGrace.Duration, 195*time.Minute; got != want {
		t.Errorf("ceiling and grace make %s, want %s", got, want)
	}
	if c.Labels.Environment != "ttlab.io/env" || c.Database.Table != "sessions" {
		t.Errorf("labels = %+v, table = %q", c.Labels, c.Database.Table)
	}
	if !*c.Environments[1].SessionsDatabase {
		t.Error("an environment has a sessions database unless the file says no")
	}
	if !slices.Contains(c.TrustedControllers, ServiceAccount{Namespace: "kube-system", Name: "generic-garbage-collector"}) {
		t.Error("the garbage collector is not trusted by default")
	}
}

func TestParseKeepsAWrittenZero(t *testing.T) {
	c, err := Parse([]byte(minimal + "caps: {vms: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Caps.VMs != 0 {
		t.Errorf("caps.vms = %d, want the 0 that was written", c.Caps.VMs)
	}
}

func TestParseKeepsAWrittenEmptyList(t *testing.T) {
	c, err := Parse([]byte(minimal + "trustedControllers: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.TrustedControllers) != 0 {
		t.Errorf("trustedControllers = %v, want none", c.TrustedControllers)
	}
}

func TestParseNamesEveryFaultAtOnce(t *testing.T) {
	_, err := Parse([]byte(`
apiVersion: config.vmwarden.io/v1
kind: WardenConfig
vmNamespace: Lab_VMs
vmNamespacee: lab-vms
podNamespaces: [lab-pods, lab-pods]
environments:
- name: prod
  backends: [{namespace: ttlab-prod, name: "back/end"}]
- name: prod
  backends: [{namespace: ttlab-prod, name: backend}]
  reaper: {namespace: ttlab-prod, name: backend}
- name: ""
caps: {vms: -1, reservation: 10ms, whenUncertain: Maybe}
admins: {groups: ["system:authenticated"]}
database: {statuses: {running: finished}}
reaping: {concurrency: 0}
brakes: {orphans: {maxSharePercent: 101}}
`))
	if err == nil {
		t.Fatal("no error")
	}
	faults := Faults(err)
	for _, path := range []string{
		"apiVersion", `"vmNamespacee"`, "vmNamespace", "podNamespaces[1]", "environments[0].backends[0].name", "environments[1].name",
		"environments[1].reaper", "environments[2].name", "environments[2].backends", "caps.vms", "caps.reservation", "caps.whenUncertain",
		"admins.groups[0]", "database.statuses.ended[0]", "reaping.concurrency", "brakes.orphans.maxSharePercent",
	} {
		if !slices.ContainsFunc(faults, func(fault error) bool { return strings.Contains(fault.Error(), path) }) {
			t.Errorf("no fault names %s in:\n%v", path, faults)
		}
	}
	if len(faults) != 16 {
		t.Errorf("%d faults, want 16:\n%v", len(faults), faults)
	}
}

func TestParseNamesARepeatedFieldAndGoesOn(t *testing.T) {
	_, err := Parse([]byte(minimal + "vmNamespace: other\ncaps: {vms: -1}\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"vmNamespace" already set`, "caps.vms"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// A type that decodes itself, such as a duration, tells the decoder no path; and the decoder stops at the first fault.
func TestParseNamesEveryValueOfAWrongTypeAndWhatItShouldBe(t *testing.T) {
	_, err := Parse([]byte(`
apiVersion: config.vmwarden.io/v1alpha1
kind: WardenConfig
vmNamespace: 5
vmNamespace: 5
podNamespaces: [1, lab-pods, lab-pods]
environments:
- name: prod
  backends: {namespace: ttlab-prod, name: backend}
  sessionsDatabase: maybe
- dev
caps: {vms: eight, session: 1.5, cpu: lots, kubevirt: {additionalOverheadRatio: much}, reservation: 3 hours, whenUncertain: Maybe}
lifetimes: soon
messages: {templates: {CapVMs: 3}}
colour: blue
`))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`line 5: key "vmNamespace" already set in map`,
		`caps.cpu: Invalid value: "lots": must be a quantity, such as 16 or 48Gi, or "unlimited"`,
		`caps.kubevirt.additionalOverheadRatio: Invalid value: "much": must be a quantity, such as 1.5`,
		`caps.reservation: Invalid value: "3 hours": must be a duration, such as 90s, 15m or 3h`,
		`caps.session: Invalid value: "1.5": must be a whole number, without quotes`,
		`caps.vms: Invalid value: "eight": must be a whole number, without quotes`,
		`environments[0].backends: Invalid value: must be a list`,
		`environments[0].sessionsDatabase: Invalid value: "maybe": must be true or false`,
		`environments[1]: Invalid value: "dev": must be fields with values`,
		`lifetimes: Invalid value: "soon": must be fields with values`,
		`messages.templates[CapVMs]: Invalid value: "3": must be text; put it into quotes`,
		`podNamespaces[0]: Invalid value: "1": must be text; put it into quotes`,
		`vmNamespace: Invalid value: "5": must be text; put it into quotes`,
		`unknown field "colour"`,
		`podNamespaces[2]: Duplicate value: "lab-pods"`,
		`caps.whenUncertain: Unsupported value: "Maybe": supported values: "Deny", "Allow"`,
	}
	var got []string
	for _, fault := range Faults(err) {
		got = append(got, fault.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestParseRefusesWhatIsNoConfiguration(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           "",
		"a list":          "[]",
		"broken YAML":     "a: [",
		"a wrong type":    minimal + "caps: {vms: eight}",
		"a bad duration":  minimal + "caps: {reservation: soon}",
		"another kind":    "apiVersion: v1\nkind: ConfigMap\n",
		"binary":          "\x00\x01",
		"a second object": minimal + "---\n" + minimal,
	} {
		if _, err := Parse([]byte(content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
