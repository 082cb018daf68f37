package policy

import (
	"embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/internal/lab"
)

//go:embed messages
var messageFiles embed.FS

// Messages are the texts of denials in another language, or in an installation's own words. Codes and fields stay as they are.
// The zero value says everything in the built-in English.
type Messages struct {
	templates map[Code]*template.Template
}

// Languages are the ready sets of messages, besides the built-in English.
func Languages() []string { return []string{"ja", "ko"} }

// MessageData is what a template can say of a denial.
type MessageData struct {
	Code  string
	Field string
	// Kind, Namespace and Name are the object's; Environment and Session its labels.
	Kind, Namespace, Name, Environment, Session string
	// Requester is the user name, RequesterEnvironment the environment of a backend or a reaper.
	Requester, RequesterEnvironment string
	// Limit, Used and Reserved are the cap's count, in places, CPUs or Gi; Seconds is how long the reservation that ends first
	// still lasts.
	Limit, Used, Reserved, Seconds int
	// Found and Remedy are the built-in English text's two halves.
	Found, Remedy string
}

// NewMessages takes the set of a language (empty or "en" for English) and, over it, templates by code. Its errors name the
// language or the code.
func NewMessages(language string, own map[string]string) (Messages, []error) {
	texts := map[string]string{}
	var faults []error
	switch {
	case language == "" || language == "en":
	case slices.Contains(Languages(), language):
		content, err := messageFiles.ReadFile("messages/" + language + ".yaml")
		if err == nil {
			err = yaml.UnmarshalStrict(content, &texts)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("the messages of language %q: %w", language, err))
		}
	default:
		faults = append(faults, fmt.Errorf("language %q: use en, %s", language, strings.Join(Languages(), ", ")))
	}
	maps.Copy(texts, own)
	m := Messages{templates: map[Code]*template.Template{}}
	for code, text := range texts {
		if !slices.Contains(Codes(), Code(code)) {
			faults = append(faults, fmt.Errorf("code %q is none of vmwarden's", code))
			continue
		}
		parsed, err := template.New(code).Option("missingkey=error").Parse(text)
		if err == nil {
			// A field that does not exist shows only when the template is executed: now, and not at a student's denial.
			err = parsed.Execute(&strings.Builder{}, MessageData{})
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("code %s: %w", code, err))
			continue
		}
		m.templates[Code(code)] = parsed
	}
	return m, faults
}

// text says a violation in the installation's words, or else in English.
func (m Messages) text(contract lab.Contract, f Facts, d Decision, v Violation) string {
	parsed, found := m.templates[v.Code]
	if !found {
		return v.Message()
	}
	environment, session := belongings(contract, f)
	data := MessageData{
		Code: string(v.Code), Field: v.FieldPath(), Kind: string(f.Kind), Namespace: f.Namespace, Name: f.Name,
		Environment: environment, Session: session, Requester: f.Requester.Username, RequesterEnvironment: f.Requester.Environment,
		Found: v.Found, Remedy: v.Remedy,
	}
	if d.Places != nil {
		short := shortageBehind(*d.Places, v.Code)
		data.Limit, data.Used, data.Reserved = inUnits(short.Scope, short.Limit), inUnits(short.Scope, short.Used), inUnits(short.Scope, short.Reserved)
		data.Seconds = int(math.Ceil(short.FirstLapse.Seconds()))
	}
	var text strings.Builder
	if err := parsed.Execute(&text, data); err != nil {
		return v.Message()
	}
	return text.String()
}
