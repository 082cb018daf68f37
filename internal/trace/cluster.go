package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/audit"
	"github.com/ttlab/vmwarden/internal/status"
)

// Facts are what a cluster holds at one moment.
type Facts struct {
	// At is the moment, Namespace where was looked.
	At        time.Time
	Namespace string
	// Machines are those with the name or of the session; Looked tells that they could be looked up, so that one that is missing is gone.
	Machines []metav1.PartialObjectMetadata
	Looked   bool
	// Events are the namespace's, all of them.
	Events []corev1.Event
	// Statuses are those of the environments' passes.
	Statuses []status.Status
}

// Learn takes names from machines that the cluster has. It comes before the logs are read.
func (c *Collector) Learn(machines []metav1.PartialObjectMetadata) {
	for i := range machines {
		machine := &machines[i]
		c.wanted.wants(object{kind: machineKind, namespace: machine.Namespace, name: machine.Name}, machine.Labels[c.options.Labels.Session])
	}
}

// MachineNames are the names of the virtual machines that are told of, as far as they are known.
func (c *Collector) MachineNames() []string { return slices.Sorted(maps.Keys(c.wanted.machines)) }

// Add hands over what the cluster holds. It comes after the logs: more names are known then.
func (c *Collector) Add(facts Facts) {
	c.Learn(facts.Machines)
	c.facts = &facts
}

// factRecords are the records of Events and passes. They are made last, when all names are known.
func (c *Collector) factRecords() []*record {
	if c.facts == nil {
		return nil
	}
	var list []*record
	for i := range c.facts.Events {
		if r := c.event(&c.facts.Events[i]); r != nil {
			list = append(list, r)
		}
	}
	for _, s := range c.facts.Statuses {
		list = append(list, c.passes(s)...)
	}
	return list
}

func (c *Collector) event(e *corev1.Event) *record {
	o := object{kind: e.InvolvedObject.Kind, namespace: e.InvolvedObject.Namespace, name: e.InvolvedObject.Name}
	if !c.wanted.wants(o, "") && !c.wanted.named(e.Message) {
		return nil
	}
	first, last := e.FirstTimestamp.Time, e.LastTimestamp.Time
	if first.IsZero() {
		first = e.EventTime.Time
	}
	if e.Series != nil {
		last = e.Series.LastObservedTime.Time
	}
	if first.IsZero() {
		first = e.CreationTimestamp.Time
	}
	who := e.Source.Component
	if who == "" {
		who = e.ReportingController
	}
	r := &record{object: o, uid: string(e.InvolvedObject.UID)}
	r.Line = Line{
		Time: first, Times: int(max(1, e.Count)), Source: EventList, Who: who, Object: o.String(), What: Told,
		Text: e.Reason + ": " + strings.TrimSpace(e.Message), Reference: e.Namespace + "/" + e.Name,
	}
	if r.Times > 1 && last.After(first) {
		r.Last = &last
	}
	// An Event of a creation that was denied is about an object that never came to be.
	if o.kind == machineKind && strings.HasPrefix(e.Message, "CREATE ") && e.Type == corev1.EventTypeWarning {
		r.uid, r.before = "", strings.Contains(e.Message, " denied to ") && !strings.Contains(e.Message, " would be denied ")
	}
	return r
}

// passes are what the last passes of an environment said of what is asked for.
func (c *Collector) passes(s status.Status) []*record {
	var list []*record
	add := func(pass status.Pass, o object, what, text string) {
		r := &record{object: o, environment: s.Environment}
		r.Line = Line{Time: pass.StartedAt, Times: 1, Source: Status, Who: "reapjob of " + s.Environment, Object: o.String(), What: what, Text: text}
		list = append(list, r)
	}
	for _, pass := range slices.Backward(s.Passes) {
		for _, failure := range pass.Failures {
			if c.wanted.sessions[failure.Session] {
				add(pass, object{kind: "Session", name: failure.Session}, PassFailed, failure.Direction+": "+failure.Detail)
			}
		}
		for _, notice := range pass.Notices {
			if c.wanted.named(notice.What + " " + notice.Reason) {
				kind, name, _ := strings.Cut(notice.What, "/")
				add(pass, object{kind: kind, name: name}, PassKept, notice.What+": "+notice.Reason)
			}
		}
	}
	return list
}

// holds are the passes of the lives' environments that were held back while one of the machines was there.
func (c *Collector) holds(lives []*life) []*record {
	if c.facts == nil {
		return nil
	}
	var list []*record
	for _, s := range c.facts.Statuses {
		for _, pass := range slices.Backward(s.Passes) {
			if !slices.ContainsFunc(lives, func(l *life) bool { return l.environment == s.Environment && l.covers(pass.StartedAt) }) {
				continue
			}
			for _, hold := range pass.Holds {
				o := object{kind: "Direction", name: hold.Direction}
				r := &record{object: o, environment: s.Environment}
				r.Line = Line{
					Time: pass.StartedAt, Times: 1, Source: Status, Who: "reapjob of " + s.Environment, Object: o.String(), What: PassHeld,
					Text: fmt.Sprintf("%s: %s", hold.Cause, hold.Reason),
				}
				list = append(list, r)
			}
		}
	}
	return list
}

// metadata is a machine's in the form in which the audit log's bodies are read.
func metadata(machine *metav1.PartialObjectMetadata) *audit.Metadata {
	m := &audit.Metadata{
		Name: machine.Name, UID: string(machine.UID), Generation: machine.Generation, Labels: machine.Labels, Annotations: machine.Annotations,
		Finalizers: machine.Finalizers,
	}
	if machine.DeletionTimestamp != nil {
		m.DeletionTimestamp = &machine.DeletionTimestamp.Time
	}
	return m
}
