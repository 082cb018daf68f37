package policy

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

func TestEveryLanguageHasEveryCodeAndNoOther(t *testing.T) {
	for _, language := range Languages() {
		content, err := messageFiles.ReadFile("messages/" + language + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := yaml.UnmarshalStrict(content, &texts); err != nil {
			t.Fatalf("%s: %v", language, err)
		}
		for _, code := range Codes() {
			if texts[string(code)] == "" {
				t.Errorf("%s has no text for %s", language, code)
			}
			delete(texts, string(code))
		}
		if len(texts) > 0 {
			t.Errorf("%s has texts for what is no code: %v", language, texts)
		}
		if _, faults := NewMessages(language, nil); len(faults) > 0 {
			t.Errorf("%s: %v", language, faults)
		}
	}
}

func TestADenialSpeaksTheConfiguredLanguageAndKeepsItsCode(t *testing.T) {
	messages, faults := NewMessages("ja", map[string]string{"CapVMs": "full: {{.Used}}/{{.Limit}} for {{.RequesterEnvironment}}"})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	v := newValidator(&places{verdict: ledger.Verdict{Shortages: []ledger.Shortage{{Scope: ledger.Namespace, Limit: 8, Used: 8, Asked: 1}}}})
	v.Messages = messages
	full := v.Handle(t.Context(), create(prodBackend, stamped("prod")))
	if got, want := full.Result.Message, "CapVMs: full: 8/8 for prod"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	claim := v.Handle(t.Context(), create(devBackend, stamped("prod", set("dev", "spec", "template", "metadata", "labels", "ttlab.io/env"))))
	cause := claim.Result.Details.Causes[0]
	if cause.Type != "EnvironmentMismatch" || !strings.Contains(cause.Message, "環境「dev」") {
		t.Errorf("cause = %+v, want EnvironmentMismatch in Japanese", cause)
	}
}

func TestBadMessagesAreRefusedAllAtOnce(t *testing.T) {
	_, faults := NewMessages("fr", map[string]string{"CapVMs": "{{.Limt}}", "CapReserved": "{{", "CapSomething": "x"})
	if len(faults) != 4 {
		t.Errorf("faults = %v, want four: the language, an unknown field, a broken template, an unknown code", faults)
	}
}
