package invariant

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/policy"
)

// maxAuditLine bounds a line of the audit log in bytes.
const maxAuditLine = 16 << 20

// writeVerbs are those of requests that change something.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// auditEntry is what is read of an entry of kube-apiserver's audit log (audit.k8s.io/v1, Event).
type auditEntry struct {
	AuditID          string            `json:"auditID"`
	Stage            string            `json:"stage"`
	Verb             string            `json:"verb"`
	RequestURI       string            `json:"requestURI"`
	User             auditUser         `json:"user"`
	ImpersonatedUser *auditUser        `json:"impersonatedUser"`
	ObjectRef        auditObjectRef    `json:"objectRef"`
	ResponseStatus   auditStatus       `json:"responseStatus"`
	RequestObject    json.RawMessage   `json:"requestObject"`
	ResponseObject   *auditObject      `json:"responseObject"`
	Received         time.Time         `json:"requestReceivedTimestamp"`
	Staged           time.Time         `json:"stageTimestamp"`
	Annotations      map[string]string `json:"annotations"`
}

type auditUser struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

type auditObjectRef struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

type auditStatus struct {
	Code int `json:"code"`
}

// auditDeleteObject is metav1.DeleteOptions.
type auditDeleteObject struct {
	Preconditions struct {
		UID string `json:"uid"`
	} `json:"preconditions"`
	PropagationPolicy string   `json:"propagationPolicy"`
	OrphanDependents  bool     `json:"orphanDependents"`
	DryRun            []string `json:"dryRun"`
}

type auditObject struct {
	Kind     string        `json:"kind"`
	Metadata auditMetadata `json:"metadata"`
	Spec     struct {
		Template struct {
			Metadata auditMetadata `json:"metadata"`
		} `json:"template"`
	} `json:"spec"`
}

type auditMetadata struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// UnmarshalJSON leaves out what is no object's metadata, such as a Status's.
func (o *auditObject) UnmarshalJSON(data []byte) error {
	type plain auditObject
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	if kind.Kind == "Status" || strings.HasSuffix(kind.Kind, "List") {
		return nil
	}
	return json.Unmarshal(data, (*plain)(o))
}

// ReadAudit reads the writes of an audit log. Its policy has to keep KubeVirt's objects at the level RequestResponse; of everything
// else Metadata will do. A line that an API server was killed over is passed by where another one follows it on the same line or it is
// the log's last; any other broken line is an error: what is not read is not judged.
func ReadAudit(in io.Reader) ([]Write, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAuditLine)
	var writes []Write
	var broken error
	for number := 1; lines.Scan(); number++ {
		if broken != nil {
			return nil, broken
		}
		line := lines.Bytes()
		var entry auditEntry
		err := json.Unmarshal(line, &entry)
		if start := strings.LastIndex(string(line), `{"kind":"Event","apiVersion":"audit.k8s.io/`); err != nil && start > 0 {
			entry = auditEntry{}
			err = json.Unmarshal(line[start:], &entry)
		}
		if err != nil {
			broken = fmt.Errorf("line %d of the audit log: %w", number, err)
			continue
		}
		// A policy may keep reads too; they break nothing.
		if slices.Contains(writeVerbs, entry.Verb) && (entry.Stage == "ResponseComplete" || entry.Stage == "Panic") {
			write, err := entry.write()
			if err != nil {
				return nil, fmt.Errorf("line %d of the audit log: %w", number, err)
			}
			writes = append(writes, write)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(broken, fmt.Errorf("reading the audit log: %w", err))
	}
	slices.SortStableFunc(writes, func(a, b Write) int { return a.Answered.Compare(b.Answered) })
	return writes, nil
}

func (e *auditEntry) annotation(name string) string {
	return e.Annotations["validate.vmwarden.io/"+name]
}

// saysDryRun reads the URL as the API server does: another parameter may hold the same words.
func (e *auditEntry) saysDryRun() bool {
	parsed, err := url.Parse(e.RequestURI)
	return err == nil && slices.Contains(parsed.Query()["dryRun"], "All")
}

func (e *auditEntry) write() (Write, error) {
	user := e.User
	if e.ImpersonatedUser != nil {
		user = *e.ImpersonatedUser
	}
	w := Write{
		AuditID: e.AuditID, Verb: e.Verb, Username: user.Username, Groups: user.Groups,
		Resource: e.ObjectRef.Resource, Sub: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Arrived: e.Received, Answered: e.Staged, Code: e.ResponseStatus.Code,
		DryRun: e.saysDryRun(),
		Denied: e.annotation("decision") == policy.DeniedWord, Environment: e.annotation("environment"), Session: e.annotation("session"),
	}
	if e.Stage == "Panic" {
		w.Code = 0
	}
	if len(e.RequestObject) > 0 && w.deletes() {
		// Of other requests it may be anything, such as a JSON patch, which is a list.
		var options auditDeleteObject
		if err := json.Unmarshal(e.RequestObject, &options); err != nil {
			return Write{}, fmt.Errorf("reading the options of a deletion: %w", err)
		}
		w.BodyKnown = true
		w.Precondition = options.Preconditions.UID
		w.Orphans = options.OrphanDependents || options.PropagationPolicy == "Orphan"
		w.DryRun = w.DryRun || len(options.DryRun) > 0
	}
	if o := e.ResponseObject; o != nil && o.Metadata.UID != "" {
		w.Object = &Object{
			UID: o.Metadata.UID, Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations,
			TemplateLabels: o.Spec.Template.Metadata.Labels,
		}
		if w.Name == "" {
			w.Name = o.Metadata.Name
		}
	}
	return w, nil
}
