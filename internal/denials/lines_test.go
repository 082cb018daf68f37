package denials

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/internal/audit"
)

// This file builds lines as the two logs have them: a case shows only what differs.

const (
	devBackend  = "system:serviceaccount:ttlab-dev:backend"
	prodBackend = "system:serviceaccount:ttlab-prod:backend"
	session     = "a0000000-0000-4000-8000-000000000001"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

type document map[string]any

// audited is an audit log's entry of an allowed create, changed.
func audited(at time.Time, changes ...func(document)) string {
	entry := document{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "audit-1", "stage": "ResponseComplete",
		"verb":                     "create",
		"user":                     document{"username": devBackend},
		"objectRef":                document{"resource": "virtualmachines", "namespace": "lab-vms", "name": "lab-a0000000", "apiGroup": "kubevirt.io"},
		"responseStatus":           document{"code": 201},
		"requestReceivedTimestamp": at.Format(time.RFC3339Nano), "stageTimestamp": at.Format(time.RFC3339Nano),
		"annotations": document{
			audit.AnnotationPrefix + "decision": "allow", audit.AnnotationPrefix + "environment": "dev", audit.AnnotationPrefix + "session": session,
			audit.AnnotationPrefix + "requester-kind": "Backend", "authorization.k8s.io/decision": "allow",
		},
	}
	return entry.line(changes)
}

// logged is our own log's line of a denied create, changed.
func logged(at time.Time, changes ...func(document)) string {
	line := document{
		"level": "info", "ts": at.Format(time.RFC3339Nano), "caller": "policy/validator.go:1", "msg": "admission denied", "review": "review-1",
		"codes": []string{"CapVMs"}, "operation": "CREATE", "kind": "VirtualMachine", "namespace": "lab-vms", "name": "lab-a0000000",
		"uid": "uid-1", "environment": "dev", "session": session, "requester": devBackend, "requesterKind": "Backend", "dryRun": false,
		"message": "CapVMs: namespace lab-vms has 8 virtual machines; try again",
	}
	return line.line(changes)
}

func (d document) line(changes []func(document)) string {
	for _, change := range changes {
		change(d)
	}
	line, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(line)
}

// by makes the entry that of a denial by the codes, with a review's id.
func by(review, codes string) func(document) {
	return func(d document) {
		annotations := d["annotations"].(document)
		annotations[audit.AnnotationPrefix+"decision"] = "deny"
		annotations[audit.AnnotationPrefix+"code"] = codes
		annotations[audit.AnnotationPrefix+"review"] = review
		code, _, _ := strings.Cut(codes, ",")
		d["responseStatus"] = document{"code": 403, "message": "admission webhook denied it", "details": document{
			"causes": []document{{"reason": code, "field": "spec", "message": "in the requester's words"}},
		}}
	}
}

func with(field string, value any) func(document) {
	return func(d document) { d[field] = value }
}

func annotated(name, value string) func(document) {
	return func(d document) { d["annotations"].(document)[audit.AnnotationPrefix+name] = value }
}

func named(name string) func(document) {
	return func(d document) { d["objectRef"].(document)["name"] = name }
}

// collected is what is found in the lines, each of the logs an input of its own.
func collected(t *testing.T, filter Filter, logs ...[]string) Report {
	t.Helper()
	collector := NewCollector(filter, DefaultLimit)
	for i, lines := range logs {
		if err := collector.Read(fmt.Sprintf("log-%d", i), strings.NewReader(strings.Join(lines, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	return collector.Report()
}

// only is the only denial of a report.
func only(t *testing.T, report Report) *Denial {
	t.Helper()
	if len(report.Denials) != 1 || len(report.Read.Broken) != 0 {
		t.Fatalf("%d denials, want one; broken: %v", len(report.Denials), report.Read.Broken)
	}
	return report.Denials[0]
}
