package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/internal/audit"
	"github.com/ttlab/vmwarden/internal/config"
)

// This file builds lines as the logs have them: a case shows only what differs.

const (
	backendUser = "system:serviceaccount:ttlab-prod:backend"
	reaperUser  = "system:serviceaccount:ttlab-prod:reaper"
	strangeUser = "system:serviceaccount:ttlab-dev:backend"
	session     = "a0000000-0000-4000-8000-000000000001"
	machineName = "lab-a0000000"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

type document map[string]any

// entry is an audit log's entry at the level Metadata: a verb on the machine, accepted.
func entry(minute int, verb, user string, changes ...func(document)) string {
	at := noon.Add(time.Duration(minute) * time.Minute)
	d := document{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": fmt.Sprintf("audit-%d-%s", minute, verb), "stage": "ResponseComplete",
		"verb": verb, "user": document{"username": user},
		"objectRef":                document{"resource": "virtualmachines", "namespace": "lab-vms", "name": machineName, "apiGroup": "kubevirt.io"},
		"responseStatus":           document{"code": map[string]int{"create": 201}[verb] + map[bool]int{true: 200}[verb != "create"]},
		"requestReceivedTimestamp": at.Format(time.RFC3339Nano), "stageTimestamp": at.Add(time.Millisecond).Format(time.RFC3339Nano),
		"annotations": document{},
	}
	for _, change := range changes {
		change(d)
	}
	line, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(line)
}

// reviewed adds our decision, as it stands beside a request that was reviewed.
func reviewed(d document) {
	annotations := d["annotations"].(document)
	for key, value := range map[string]string{"decision": "allow", "environment": "prod", "session": session, "requester-kind": "Backend"} {
		annotations[audit.AnnotationPrefix+key] = value
	}
}

func denied(codes string) func(document) {
	return func(d document) {
		reviewed(d)
		annotations := d["annotations"].(document)
		annotations[audit.AnnotationPrefix+"decision"], annotations[audit.AnnotationPrefix+"code"] = "deny", codes
		annotations[audit.AnnotationPrefix+"review"] = "review-1"
		d["responseStatus"] = document{"code": 403, "message": "denied"}
	}
}

// removed is the answer to a deletion that removed the object.
func removed(uid string) func(document) {
	return func(d document) {
		d["responseStatus"] = document{"code": 200, "status": "Success", "details": document{"name": machineName, "uid": uid}}
	}
}

func refused(code int) func(document) {
	return func(d document) { d["responseStatus"] = document{"code": code, "message": "not now"} }
}

func annotated(name, value string) func(document) {
	return func(d document) { d["annotations"].(document)[name] = value }
}

func about(resource, name string) func(document) {
	return func(d document) {
		d["objectRef"].(document)["resource"], d["objectRef"].(document)["name"] = resource, name
	}
}

func ref(field, value string) func(document) {
	return func(d document) { d["objectRef"].(document)[field] = value }
}

func with(field string, value any) func(document) {
	return func(d document) { d[field] = value }
}

// answered is the object as the API server answered it, at the level RequestResponse.
func answered(metadata document) func(document) {
	return func(d document) {
		d["level"] = "RequestResponse"
		d["responseObject"] = document{"kind": "VirtualMachine", "metadata": metadata}
	}
}

// own is a line of our own logs.
func own(minute int, message string, fields document) string {
	fields["ts"], fields["msg"] = noon.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339Nano), message
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(line)
}

func newCollector(t *testing.T, asked string) *Collector {
	t.Helper()
	return NewCollector(asked, Options{Labels: config.DefaultLabels()})
}

// read reads the lines as files are read: again where a name was learned.
func read(t *testing.T, c *Collector, lines ...string) {
	t.Helper()
	for learned := -1; learned != c.Learned(); {
		learned = c.Learned()
		c.Again()
		if err := c.Read("log", strings.NewReader(strings.Join(lines, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
	}
}

func told(t *testing.T, asked string, lines ...string) Report {
	t.Helper()
	c := newCollector(t, asked)
	read(t, c, lines...)
	return c.Report()
}

// story is the time line in short: source, object and what.
func story(report Report) []string {
	lines := []string{}
	for _, line := range report.Timeline {
		lines = append(lines, fmt.Sprintf("%s %s %s", line.Source, line.Object, line.What))
	}
	return lines
}

func answer(t *testing.T, m Machine, question string) Answer {
	t.Helper()
	for _, a := range m.Answers {
		if a.Question == question {
			return a
		}
	}
	t.Fatalf("%s is not answered", question)
	return Answer{}
}

// expect looks for a source and for words in an answer; the source of what is not known is empty.
func expect(t *testing.T, m Machine, question string, source Source, words ...string) {
	t.Helper()
	a := answer(t, m, question)
	if a.Source != source || a.Known != (source != "") {
		t.Errorf("%s: known from %q, want %q: %+v", question, a.Source, source, a)
	}
	for _, word := range words {
		if !strings.Contains(a.Who+" "+a.Text, word) {
			t.Errorf("%s does not mention %q: %+v", question, word, a)
		}
	}
}

// only is the only machine of a report.
func only(t *testing.T, report Report) Machine {
	t.Helper()
	if len(report.Machines) != 1 {
		t.Fatalf("%d machines, want one: %+v", len(report.Machines), report.Machines)
	}
	return report.Machines[0]
}
