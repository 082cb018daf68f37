package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/internal/audit"
	"github.com/ttlab/vmwarden/internal/lab"
)

// life is one virtual machine: what was found of one UID, or between two creations of one name.
type life struct {
	namespace, name, uid string
	session, environment string
	// records are the machine's own, in the order of time.
	records []*record
	// there is the machine as the cluster has it now.
	there *metav1.PartialObjectMetadata
	// next is the life that has the name after this one.
	next *life
}

// sameMoment is by how much the whole seconds of a creationTimestamp may differ from the audit log's time of the creation.
const sameMoment = 2 * time.Second

// lives tells apart the machines that had a name one after the other. The audit log comes first: it has the order of things. What other
// sources tell finds its life by the UID, or else by its time.
func (c *Collector) lives(records []*record) []*life {
	byName := map[string][]*life{}
	for _, r := range records {
		if r.object.kind == machineKind && r.Source == AuditLog && r.object.name != "" {
			key := r.object.namespace + "/" + r.object.name
			byName[key] = enter(byName[key], r)
		}
	}
	if c.facts != nil {
		for i := range c.facts.Machines {
			machine := &c.facts.Machines[i]
			key := machine.Namespace + "/" + machine.Name
			byName[key] = found(byName[key], machine)
		}
	}
	for _, r := range records {
		// An Event of a session's lead may tell of this machine too.
		if r.object.kind != machineKind || r.Source == AuditLog || !c.wanted.machines[r.object.name] {
			continue
		}
		key := c.key(byName, r.object)
		byName[key] = enterLater(byName[key], r)
	}
	var all []*life
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		named := byName[key]
		for i, l := range named {
			if i+1 < len(named) {
				l.next = named[i+1]
			}
			c.finish(l)
		}
		all = append(all, named...)
	}
	slices.SortStableFunc(all, func(a, b *life) int { return a.from().Compare(b.from()) })
	return all
}

// key finds the namespace of an object that is told without one.
func (c *Collector) key(byName map[string][]*life, o object) string {
	if o.namespace != "" {
		return o.namespace + "/" + o.name
	}
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		if strings.HasSuffix(key, "/"+o.name) {
			return key
		}
	}
	if c.facts != nil {
		return c.facts.Namespace + "/" + o.name
	}
	return "/" + o.name
}

func newLife(r *record) *life {
	return &life{namespace: r.object.namespace, name: r.object.name, uid: r.uid, records: []*record{r}}
}

// enter adds the audit log's next record of a name.
func enter(lives []*life, r *record) []*life {
	last := lastOf(lives)
	begins := last == nil || r.What == Created && last.hasBegun() || r.before && last.hasBegun() ||
		r.uid != "" && last.uid != "" && r.uid != last.uid
	if begins {
		return append(lives, newLife(r))
	}
	last.records = append(last.records, r)
	if last.uid == "" {
		last.uid = r.uid
	}
	return lives
}

func lastOf(lives []*life) *life {
	if len(lives) == 0 {
		return nil
	}
	return lives[len(lives)-1]
}

// hasBegun tells whether anything but refused creations is known of it.
func (l *life) hasBegun() bool {
	return l.there != nil || slices.ContainsFunc(l.records, func(r *record) bool { return !r.before })
}

// found adds a machine that the cluster has.
func found(lives []*life, machine *metav1.PartialObjectMetadata) []*life {
	uid := string(machine.UID)
	for _, l := range lives {
		created := l.first(Created)
		near := created != nil && created.Time.Sub(machine.CreationTimestamp.Time).Abs() <= sameMoment
		if l.uid == uid || l.uid == "" && (near || created == nil && l == lastOf(lives)) {
			l.there, l.uid = machine, uid
			return lives
		}
	}
	return append(lives, &life{namespace: machine.Namespace, name: machine.Name, uid: uid, there: machine})
}

// enterLater adds a record of another source.
func enterLater(lives []*life, r *record) []*life {
	var at *life
	for _, l := range lives {
		switch {
		case r.uid != "" && l.uid == r.uid:
			at = l
		case r.uid == "" && r.before && at == nil && !l.from().Before(r.Time.Add(-sameMoment)):
			// Refused before this one was made.
			at = l
		case r.uid == "" && !r.before && !l.from().After(r.Time.Add(sameMoment)):
			at = l
		}
	}
	if at == nil && r.uid != "" {
		if last := lastOf(lives); last != nil && last.uid == "" && last.hasBegun() {
			at = last
			last.uid = r.uid
		}
	}
	if at == nil && r.uid == "" {
		at = lastOf(lives)
	}
	if at == nil {
		return append(lives, newLife(r))
	}
	at.records = append(at.records, r)
	return lives
}

// finish puts the records in order and says of each change what it changed.
func (c *Collector) finish(l *life) {
	slices.SortStableFunc(l.records, func(a, b *record) int { return a.Time.Compare(b.Time) })
	var before *audit.Metadata
	for _, r := range l.records {
		r.UID = l.uid
		if l.session == "" && r.session != "" {
			l.session = r.session
		}
		if l.environment == "" && r.environment != "" {
			l.environment = r.environment
		}
		if r.state == nil {
			if r.What == Changed && r.bodiless {
				r.Text += "; at the level Metadata the audit log does not tell what changed"
			}
			continue
		}
		if r.What == Changed && before != nil {
			if what := difference(c.options.Labels, before, r.state); what != "" {
				r.Text += ": " + what
			} else if !strings.Contains(r.Text, statusWrite) {
				r.Text += ": nothing that is watched here"
			}
		}
		before = r.state
	}
	if l.there != nil {
		l.session, l.environment = l.there.Labels[c.options.Labels.Session], l.there.Labels[c.options.Labels.Environment]
	}
}

// difference says in words what of the metadata changed, as far as it matters here; empty for nothing.
func difference(labels lab.Labels, before, after *audit.Metadata) string {
	var texts []string
	compare := func(what string, from, to string) {
		if from != to {
			texts = append(texts, fmt.Sprintf("%s %q → %q", what, from, to))
		}
	}
	for _, key := range []string{labels.Environment, labels.Session, labels.Lab} {
		compare("label "+key, before.Labels[key], after.Labels[key])
	}
	for _, key := range []string{lab.DeadlineAnnotation, lab.CreatedByAnnotation, lab.ReapedAnnotation} {
		compare("annotation "+key, before.Annotations[key], after.Annotations[key])
	}
	compare("finalizers", strings.Join(before.Finalizers, ","), strings.Join(after.Finalizers, ","))
	if before.Generation != after.Generation {
		texts = append(texts, fmt.Sprintf("spec (generation %d → %d)", before.Generation, after.Generation))
	}
	return strings.Join(texts, ", ")
}

func (l *life) first(what string) *record {
	for _, r := range l.records {
		if r.What == what {
			return r
		}
	}
	return nil
}

func (l *life) all(what string) []*record {
	return slices.DeleteFunc(slices.Clone(l.records), func(r *record) bool { return r.What != what })
}

// from is when it is first heard of.
func (l *life) from() time.Time {
	if created := l.first(Created); created != nil {
		return created.Time
	}
	if l.there != nil {
		return l.there.CreationTimestamp.Time
	}
	return l.records[0].Time
}

// covers tells whether the machine may have been there at a time.
func (l *life) covers(at time.Time) bool {
	if at.Before(l.from()) {
		return false
	}
	if gone := l.first(Gone); gone != nil {
		return !at.After(gone.Time)
	}
	return l.next == nil || at.Before(l.next.from())
}

// state is the machine's metadata as it was last seen, and by which source; nil where no source shows it.
func (l *life) state() (*audit.Metadata, Source) {
	if l.there != nil {
		return metadata(l.there), Annotation
	}
	for _, r := range slices.Backward(l.records) {
		if r.state != nil {
			return r.state, r.Source
		}
	}
	return nil, ""
}

// mark is the reaper's annotation, and by which source.
func (l *life) mark() (lab.Reaped, Source, bool) {
	read := func(value string) (lab.Reaped, bool) {
		mark, err := lab.ParseReaped(value)
		return mark, err == nil && mark.Reason != "" && !mark.Since.IsZero() && !mark.DeletionAskedAt.IsZero()
	}
	if state, source := l.state(); state != nil {
		if mark, ok := read(state.Annotations[lab.ReapedAnnotation]); ok {
			return mark, source, true
		}
	}
	for _, r := range slices.Backward(l.records) {
		if mark, ok := read(r.mark); ok {
			return mark, r.Source, true
		}
	}
	return lab.Reaped{}, "", false
}
