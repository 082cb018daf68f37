package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ttlab/vmwarden/internal/audit"
	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy"
)

// readAudit makes records of an audit log's entry.
func (c *Collector) readAudit(line []byte) ([]*record, error) {
	entry, err := audit.Parse(line)
	if err != nil {
		return nil, err
	}
	if entry.Kind != "Event" || entry.Stage == "RequestReceived" || !writes(entry.Verb) {
		return nil, nil
	}
	if entry.Received.IsZero() {
		return nil, fmt.Errorf("audit entry %q has no requestReceivedTimestamp", entry.AuditID)
	}
	e := &audited{Entry: entry, Bodies: audit.ParseBodies(line)}
	e.object = object{kind: audit.Kind(entry.ObjectRef.Resource), namespace: entry.ObjectRef.Namespace, name: entry.ObjectRef.Name}
	if e.object.name == "" && e.Response != nil {
		e.object.name = e.Response.Name
	}
	if entry.Verb == "deletecollection" && !e.Failed() {
		return c.collection(e), nil
	}
	if !c.wanted.wants(e.object, c.session(e)) {
		return nil, nil
	}
	return c.happened(e), nil
}

// writes tells whether a verb changes anything.
func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// audited is an entry with its bodies.
type audited struct {
	audit.Entry
	audit.Bodies
	object object
}

func (c *Collector) session(e *audited) string { return e.told("session", c.options.Labels.Session) }

func (c *Collector) environment(e *audited) string {
	return e.told("environment", c.options.Labels.Environment)
}

// told is whose the object is, as the review says by an annotation, or else a body by a label.
func (e *audited) told(annotation, label string) string {
	if value := e.Annotation(annotation); value != "" {
		return value
	}
	if e.Response != nil {
		return e.Response.Labels[label]
	}
	return e.Request.Labels[label]
}

func (e *audited) dryRun() bool {
	return e.SaysDryRun() || e.DryRun
}

// creates tells a creation: an apply that creates has the verb patch.
func (e *audited) creates() bool {
	return e.ObjectRef.Subresource == "" && (e.Verb == "create" || e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated)
}

// base is what all records of an entry have in common.
func (c *Collector) base(e *audited, what, text string) *record {
	r := &record{object: e.object, uid: e.ObjectRef.UID, session: c.session(e), environment: c.environment(e), codes: e.Codes()}
	r.Line = Line{Time: e.Received, Times: 1, Source: AuditLog, Object: e.object.String(), What: what, Text: text, Reference: e.AuditID}
	r.Who, r.Impersonator = e.Requester()
	for _, known := range []string{e.Request.UID, e.Precondition, e.ResponseStatus.Details.UID} {
		if r.uid == "" {
			r.uid = known
		}
	}
	if e.Response != nil {
		r.uid = e.Response.UID
	}
	if e.creates() && e.Failed() {
		// The UID was of an object that never came to be.
		r.uid, r.before = "", true
	}
	r.bodiless = e.Level == "Metadata"
	return r
}

// happened is what an entry about one object tells.
func (c *Collector) happened(e *audited) []*record {
	dry := ""
	if e.dryRun() {
		dry = "dry run; "
	}
	codes := e.Codes()
	if e.Failed() && len(codes) > 0 && e.Decision() == policy.DeniedWord {
		r := c.base(e, Denied, dry+e.verb()+" denied by "+strings.Join(codes, ", ")+": "+e.Refusal())
		r.review = e.Annotation("review")
		return []*record{r}
	}
	var list []*record
	if len(codes) > 0 {
		r := c.base(e, WouldBeDenied, "mode Audit: "+dry+e.verb()+" would be denied by "+strings.Join(codes, ", "))
		r.review = e.Annotation("review")
		list = append(list, r)
	}
	switch {
	case e.Failed():
		return append(list, c.base(e, Refused, fmt.Sprintf("%s%s refused behind vmwarden or before it (status %d): %s", dry, e.verb(), e.ResponseStatus.Code, e.Refusal())))
	case dry != "":
		return append(list, c.base(e, Changed, dry+e.verb()+" would have been accepted; nothing was changed"))
	case e.creates():
		return append(append(list, c.created(e)), c.stamped(e)...)
	case e.Verb == "delete" && e.ObjectRef.Subresource == "":
		return append(list, c.deleted(e)...)
	}
	return append(list, c.changed(e)...)
}

// verb is what was asked for, in words.
func (e *audited) verb() string {
	if e.ObjectRef.Subresource != "" {
		return e.Verb + " of " + e.ObjectRef.Subresource
	}
	return e.Verb
}

func (c *Collector) created(e *audited) *record {
	var facts []string
	if kind := e.Annotation("requester-kind"); kind != "" {
		facts = append(facts, "as a "+kind)
	}
	if count, limit := e.Annotation("count"), e.Annotation("limit"); limit != "" {
		facts = append(facts, count+" of "+limit+" places taken before it")
	}
	if e.Annotation("decision") == "" && e.object.kind == machineKind {
		facts = append(facts, "not reviewed by vmwarden")
	}
	if e.object.name == "" {
		facts = append(facts, "its name was made by the API server and stands not in this entry")
	}
	r := c.base(e, Created, strings.Join(facts, ", "))
	r.state = e.Response
	return r
}

// patchPrefix and mutationPrefix lead kube-apiserver's own annotations on what mutating webhooks did.
const (
	patchPrefix    = "patch.webhook.admission.k8s.io/"
	mutationPrefix = "mutation.webhook.admission.k8s.io/"
	mutator        = "mutate.vmwarden.io"
)

// stamped tells what our webhook added. At the level Metadata kube-apiserver notes only that it did.
func (c *Collector) stamped(e *audited) []*record {
	var texts []string
	mutated := false
	for _, key := range slices.Sorted(maps.Keys(e.Annotations)) {
		var note struct {
			Webhook string      `json:"webhook"`
			Mutated bool        `json:"mutated"`
			Patch   []operation `json:"patch"`
		}
		if !strings.HasPrefix(key, patchPrefix) && !strings.HasPrefix(key, mutationPrefix) {
			continue
		}
		if json.Unmarshal([]byte(e.Annotations[key]), &note) != nil || note.Webhook != mutator {
			continue
		}
		mutated = mutated || note.Mutated
		for _, o := range note.Patch {
			texts = append(texts, o.texts()...)
		}
	}
	text := strings.Join(texts, ", ")
	if text == "" {
		if !mutated {
			return nil
		}
		text = "something; at the level " + e.Level + " the audit log does not tell what"
	}
	r := c.base(e, Stamped, text)
	r.Who, r.Impersonator = mutator, ""
	return []*record{r}
}

// operation is one of a JSON patch.
type operation struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// texts name what an operation adds, a text for each label or annotation.
func (o operation) texts() []string {
	path := strings.NewReplacer("/spec/template/metadata/", "template ", "/metadata/", "").Replace(o.Path)
	path = strings.NewReplacer("annotations/", "annotation ", "labels/", "label ").Replace(path)
	path = strings.NewReplacer("~1", "/", "~0", "~").Replace(path)
	if added, ok := o.Value.(map[string]any); ok && len(added) > 0 {
		var texts []string
		for _, key := range slices.Sorted(maps.Keys(added)) {
			texts = append(texts, fmt.Sprintf("%s %s=%v", strings.TrimSuffix(path, "s"), key, added[key]))
		}
		return texts
	}
	if list, ok := o.Value.([]any); ok && strings.HasSuffix(path, "ownerReferences") && len(list) == 1 {
		if owner, ok := list[0].(map[string]any); ok {
			return []string{fmt.Sprintf("owner %v/%v", owner["kind"], owner["name"])}
		}
	}
	return []string{fmt.Sprintf("%s=%v", path, o.Value)}
}

// deleted tells that a deletion was asked for, and that the object was gone at once where the answer says so: kube-apiserver answers
// with a Status when it removed the object, and with the object while a finalizer or a grace period holds it.
func (c *Collector) deleted(e *audited) []*record {
	asked := c.base(e, DeletionAsked, "")
	if e.object.kind == podKind && strings.HasPrefix(asked.Who, "system:node:") {
		asked.Text = "by the kubelet, when nothing of it runs any more"
	}
	asked.state = e.Response
	if e.ResponseStatus.Status != "Success" {
		return []*record{asked}
	}
	gone := c.base(e, Gone, "the API server's answer to the deletion says that it was removed")
	gone.Time, gone.Who, gone.Impersonator = e.Done, "", ""
	return []*record{asked, gone}
}

// changed tells of a change, and that the object is gone where the change took its last finalizer.
func (c *Collector) changed(e *audited) []*record {
	r := c.base(e, Changed, e.verb())
	r.state = e.Response
	// An update brings the annotation along that is there already; a reaper patches.
	if mark := e.Request.Annotations[lab.ReapedAnnotation]; mark != "" && e.Verb == "patch" {
		r.What, r.Text, r.mark = Reaped, "annotated "+mark, mark
	}
	state := e.Response
	if state == nil || state.DeletionTimestamp == nil || len(state.Finalizers) > 0 || e.object.kind == podKind {
		return []*record{r}
	}
	gone := c.base(e, Gone, "its last finalizer was taken while it was being deleted")
	gone.Time, gone.Impersonator = e.Done, ""
	return []*record{r, gone}
}

// collection tells of a deletecollection: which objects were among what was deleted where the answer lists them, and else that they may
// have been.
func (c *Collector) collection(e *audited) []*record {
	if e.dryRun() {
		return nil
	}
	var list []*record
	for _, item := range e.Items {
		o := object{kind: e.object.kind, namespace: e.object.namespace, name: item.Name}
		if !c.wanted.wants(o, item.Labels[c.options.Labels.Session]) {
			continue
		}
		r := c.base(e, DeletionAsked, "in a deletecollection"+e.selector())
		r.object, r.Object, r.uid = o, o.String(), item.UID
		r.session, r.environment = item.Labels[c.options.Labels.Session], item.Labels[c.options.Labels.Environment]
		list = append(list, r)
	}
	// Of what was deleted the audit log keeps nothing at the level Metadata; who deletes machines in bulk is worth a line all the same.
	if len(e.Items) > 0 || e.object.kind != machineKind {
		return list
	}
	r := c.base(e, Collection, "a deletecollection"+e.selector()+"; the audit log does not tell what was in it")
	r.session = ""
	return []*record{r}
}

func (e *audited) selector() string {
	parsed, err := url.Parse(e.RequestURI)
	if err != nil || parsed.Query().Get("labelSelector") == "" {
		return " of all there were"
	}
	return " of " + parsed.Query().Get("labelSelector")
}

// isOurs tells a denial's word.
func isOurs(message string) string {
	return map[string]string{policy.DeniedMessage: Denied, policy.ReportedMessage: WouldBeDenied}[message]
}
