package lab

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"
)

// named are the fields by which KubeVirt's type of a virtual machine names a Secret or a disk.
var named = regexp.MustCompile(`(claimName|secretName|secretRef\.name|SecretRef\.name|secret\.name|dataVolume\.name)$`)

// otherwiseNamed are fields that look so and name neither: what is claimed of a device is no disk.
var otherwiseNamed = regexp.MustCompile(`^domain\.devices\.|^networks\[0\]\.resourceClaim\.`)

// Whoever takes up a newer KubeVirt is told here what can be named by it that no rule looks at.
func TestEveryFieldOfKubeVirtsTypeThatNamesASecretOrADiskIsRead(t *testing.T) {
	var spec kubevirtv1.VirtualMachineInstanceSpec
	paths := map[string]string{}
	fill(reflect.ValueOf(&spec).Elem(), "", paths)
	content, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	if err != nil {
		t.Fatal(err)
	}
	references, err := ReadReferences(content)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]string{}
	for _, secret := range references.Secrets {
		read[secret.Name] = secret.Field
	}
	for _, disk := range references.Disks {
		read[disk.Name] = disk.Field
	}
	found := 0
	for name, path := range paths {
		if !named.MatchString(path) || otherwiseNamed.MatchString(path) {
			continue
		}
		found++
		if got, want := read[name], "spec.template.spec."+path; got != want {
			t.Errorf("%s is read as %q", want, got)
		}
	}
	if found < 13 {
		t.Errorf("only %d fields were found in KubeVirt's type", found)
	}
}

// fill gives every text a value of its own, every list one item, and notes where each stands.
func fill(value reflect.Value, path string, paths map[string]string) {
	if !strings.HasPrefix(value.Type().PkgPath(), "kubevirt.io/") && !strings.HasPrefix(value.Type().PkgPath(), "k8s.io/api/core/") && value.Type().PkgPath() != "" {
		// Quantities, times and the like name nothing.
		return
	}
	switch value.Kind() {
	case reflect.String:
		name := fmt.Sprintf("n%d", len(paths))
		value.SetString(name)
		paths[name] = path
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path, paths)
	case reflect.Slice:
		if value.Type().Elem().Kind() != reflect.Uint8 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			fill(value.Index(0), path+"[0]", paths)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "":
				fill(value.Field(i), path, paths)
			case path == "":
				fill(value.Field(i), name, paths)
			default:
				fill(value.Field(i), path+"."+name, paths)
			}
		}
	}
}
