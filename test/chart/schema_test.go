package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/internal/config"
)

// TestTheSchemaKnowsEveryFieldOfTheConfiguration holds the schema of `config` against the type that the binaries decode it into.
func TestTheSchemaKnowsEveryFieldOfTheConfiguration(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(helm.Dir(), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	values := schema["properties"].(map[string]any)
	// What the chart has in a place of its own, or writes itself.
	compareFields(t, "config", values["config"], reflect.TypeFor[config.WardenConfig](), "apiVersion", "kind", "environments")
	environment := values["environments"].(map[string]any)["items"].(map[string]any)
	delete(environment["properties"].(map[string]any), "database")
	compareFields(t, "environments[]", environment, reflect.TypeFor[config.Environment]())
}

func compareFields(t *testing.T, path string, schema any, of reflect.Type, elsewhere ...string) {
	t.Helper()
	properties, _ := schema.(map[string]any)["properties"].(map[string]any)
	known := map[string]bool{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if slices.Contains(elsewhere, name) {
			continue
		}
		known[name] = true
		property, found := properties[name]
		if !found {
			t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		if inner := field.Type; inner.Kind() == reflect.Struct && property.(map[string]any)["type"] == "object" {
			compareFields(t, path+"."+name, property, inner)
		}
	}
	for name := range properties {
		if !known[name] {
			t.Errorf("%s.%s is in the schema, and the binaries do not know it", path, name)
		}
	}
}

func TestWrongValuesFailWithASentenceThatNamesTheKey(t *testing.T) {
	for set, want := range map[string]string{
		"webhook.replicaz=3":                                  "'/webhook': additional properties 'replicaz' not allowed",
		"config.cap.vms=3":                                    "'/config': additional properties 'cap' not allowed",
		"environments[0].cap=-1":                              "'/environments/0/cap': minimum: got -1, want 0",
		"config.caps.vms=-1":                                  "'/config/caps/vms': minimum: got -1, want 0",
		"config.mode=Off":                                     "'/config/mode': value must be one of 'Enforce', 'Audit'",
		"config.reaping.passTimeout=soon":                     "'/config/reaping/passTimeout': 'soon' does not match",
		"webhook.replicas=two":                                "'/webhook/replicas': got string, want integer",
		"environments[1].name=prod":                           `environments[1].name: "prod" is the name of environments[0] already`,
		"environments[0].backends[0].name=ttlab-prod/backend": "environments[0].backends[0].name: \"ttlab-prod/backend\" is no name of a ServiceAccount; write the namespace into",
		"environments[1].backends[0].namespace=ttlab-prod":    "environments[1].backends[0]: ServiceAccount ttlab-prod/backend is environments[0].backends[0] already",
		"config.trustedControllers[0].name=a b,config.trustedControllers[0].namespace=x": "config.trustedControllers[0].name: \"a b\" is no name of a ServiceAccount",
		"webhook.certificate.source=Secret":                                              "webhook.certificate: source Secret needs secretName and caBundle",
		"webhook.enabled=false,reaper.enabled=false":                                     "this release would install nothing",
		"environments=null":                       "environments is empty",
		"environments[0].backends=null":           "'/environments/0/backends': got null, want array",
		"config.labels.session=null":              "'/config/labels': missing property 'session'",
		"monitoring.serviceMonitor.enabled=maybe": "'/monitoring/serviceMonitor/enabled': got string, want boolean",
	} {
		_, err := helm.Template(t.Context(), Release{Name: "vmwarden", Namespace: "vmwarden", Values: []string{newcomer}, Set: strings.Split(set, ",")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want a fault with %q", set, err, want)
		}
	}
}
