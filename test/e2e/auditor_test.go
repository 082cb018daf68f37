package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// audited is the part of kube-apiserver's audit log that tells of our decisions.
type audited struct {
	Verb        string            `json:"verb"`
	Annotations map[string]string `json:"annotations"`
	ObjectRef   struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// auditOf finds the last entry of the API server's audit log for a verb on a virtual machine.
func auditOf(t *testing.T, verb, name string) (found audited) {
	t.Helper()
	file, err := os.Open(shared.ControlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var entry audited
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if entry.Verb == verb && entry.ObjectRef.Resource == "virtualmachines" && entry.ObjectRef.Name == name {
			found = entry
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheAuditLogTellsWhatWasDecidedAndWhy(t *testing.T) {
	clean(t)
	session := sessionID('A', 1)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	allowed := auditOf(t, "create", name)
	for key, want := range map[string]string{
		"decision": "allow", "environment": "prod", "session": session, "requester-kind": "Backend", "limit": "8",
	} {
		if got := allowed.Annotations["validate.vmwarden.io/"+key]; got != want {
			t.Errorf("the allowed create's %s = %q, want %q", key, got, want)
		}
	}
	expectDenied(t, "dev deletes prod's machine", shared.Backends["dev"].Machines(lab.VMNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}), "EnvironmentForeign")
	denied := auditOf(t, "delete", name)
	if denied.ResponseStatus.Code != 403 || denied.Annotations["validate.vmwarden.io/code"] != "EnvironmentForeign" || denied.Annotations["validate.vmwarden.io/decision"] != "deny" {
		t.Errorf("the denied delete is audited as %+v", denied)
	}
	await(t, "an Event tells of the denial", func(ctx context.Context) error {
		events, err := clients(t).CoreV1().Events(lab.VMNamespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "EnvironmentForeign" && event.Type == "Warning" {
				return nil
			}
		}
		return fmt.Errorf("%d Events, none of them", len(events.Items))
	})
}

// What no log, Event or annotation may hold: the agent's token, which stands in every cloud-init Secret.
func TestNoSecretDataIsInAnyLog(t *testing.T) {
	clean(t)
	const token = "a-token-that-must-not-leak"
	// Denied and admitted, linked and reaped: whatever is written about a Secret has been written by then.
	if _, err := shared.Backends["dev"].Create(t.Context(), backend.CloudInitSecret, backend.Lesson{Session: sessionID('A', 2), Environment: "prod"}); err == nil {
		t.Error("dev made a Secret of prod's")
	}
	session := sessionID('A', 3)
	open(t, "prod", session)
	name := backend.Lesson{Session: session}.VMName()
	awaitOwners(t, name+"-cloudinit", name)
	insert(t, "prod", expired(session))
	_, run := reapjob(t, "prod", "run", "--log-level", "debug")
	expectExit(t, run, 0)
	if strings.Contains(run.Stdout+run.Stderr, token) {
		t.Error("reapjob's output holds the token")
	}
	events, err := clients(t).CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(encodeJSON(t, events)), token) {
		t.Error("an Event holds the token")
	}
	searched := 0
	for _, directory := range []string{shared.Dir(), shared.ControlPlane.Dir()} {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				// Servers write and remove files meanwhile.
				return nil
			}
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".log" {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			searched++
			if strings.Contains(string(content), token) {
				t.Errorf("%s holds the token", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if searched < replicas+2 {
		t.Errorf("only %d logs were searched", searched)
	}
}
