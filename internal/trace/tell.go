package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// Report tells what was found in all that was read. It ends the Collector's use.
func (c *Collector) Report() Report {
	c.records.Trim()
	records := slices.Concat(c.records.Held, c.factRecords())
	slices.SortStableFunc(records, func(a, b *record) int { return a.order().Compare(b.order()) })
	lives := c.lives(records)
	records = slices.DeleteFunc(records, func(r *record) bool { return r.What == Collection && !met(lives, r) })
	records = append(records, c.holds(lives)...)
	report := Report{Asked: c.wanted.asked, Machines: []Machine{}, Timeline: []Line{}, NotKnown: []string{}, Read: c.reading}
	report.Read.LeftOut, report.Read.Cluster = c.records.Dropped, c.facts != nil
	for _, r := range records {
		if r.object.kind != machineKind {
			r.UID = lifeAround(lives, r)
		}
		report.Timeline = append(report.Timeline, r.Line)
	}
	for _, l := range lives {
		report.Machines = append(report.Machines, Machine{
			Namespace: l.namespace, Name: l.name, UID: l.uid, Session: l.session, Environment: l.environment, Answers: c.answers(l),
		})
		report.Timeline = append(report.Timeline, c.dates(l)...)
	}
	slices.SortStableFunc(report.Timeline, func(a, b Line) int { return a.order().Compare(b.order()) })
	report.Timeline = collapsed(report.Timeline)
	if report.Found() {
		report.NotKnown = c.notKnown(records)
	}
	return report
}

// met tells whether one of the machines may have been among what a deletecollection deleted.
func met(lives []*life, collection *record) bool {
	return slices.ContainsFunc(lives, func(l *life) bool {
		return l.namespace == collection.object.namespace && l.hasBegun() && l.covers(collection.Time)
	})
}

// order is where the line stands. Kubernetes writes Events and creationTimestamps in whole seconds: what happened within such a second
// comes before what is only known to have happened in it.
func (l Line) order() time.Time {
	if (l.Source == EventList || l.Source == Cluster) && l.Time.Nanosecond() == 0 {
		return l.Time.Add(time.Second - 1)
	}
	return l.Time
}

// lifeAround gives the UID of the machine in whose life something happened to its instance or launcher Pod. The API server makes a Pod's
// name, so that the entry of its creation has none: then it is the session's machine, if there is one alone.
func lifeAround(lives []*life, r *record) (uid string) {
	machine, part := machineOf(r.object)
	nameless := r.object.kind == podKind && r.object.name == ""
	if nameless {
		var there []*life
		for _, l := range lives {
			if l.session == r.session && l.covers(r.Time) {
				there = append(there, l)
			}
		}
		if len(there) != 1 {
			return ""
		}
		return there[0].uid
	}
	for _, l := range lives {
		if part && l.name == machine && !l.from().After(r.Time.Add(sameMoment)) {
			uid = l.uid
		}
	}
	return uid
}

// dates are the lines of what a machine carries and the cluster shows: times that no log has to tell.
func (c *Collector) dates(l *life) []Line {
	var lines []Line
	add := func(at time.Time, source Source, what, who, text string) {
		lines = append(lines, Line{Time: at.UTC(), Times: 1, Source: source, Who: who, Object: object{kind: machineKind, name: l.name}.String(), UID: l.uid, What: what, Text: text})
	}
	state, source := l.state()
	if l.there != nil && l.first(Created) == nil {
		add(l.there.CreationTimestamp.Time, Cluster, Created, state.Annotations[lab.CreatedByAnnotation], "its creationTimestamp; who is from "+lab.CreatedByAnnotation)
	}
	if state != nil {
		if deadline, err := lab.ParseDeadline(state.Annotations[lab.DeadlineAnnotation]); err == nil {
			add(deadline, source, Due, "", "the deadline")
		}
	}
	if mark, source, ok := l.mark(); ok {
		add(mark.Since, source, Ended, "", "since when it should be gone: "+mark.Reason)
		if l.first(DeletionAsked) == nil {
			add(mark.DeletionAskedAt, source, DeletionAsked, "", "when a pass first asked, by its own clock")
		}
	}
	if c.facts == nil || !c.facts.Looked || l.namespace != c.facts.Namespace {
		return lines
	}
	switch {
	case l.there == nil && l.next == nil && l.first(Gone) == nil && l.hasBegun():
		add(c.facts.At, Cluster, Gone, "", "the cluster does not have it")
	case l.there != nil && l.there.DeletionTimestamp != nil:
		add(c.facts.At, Cluster, Deleting, "", "it is still there, and has been deleting since "+stamp(l.there.DeletionTimestamp.Time))
	}
	return lines
}

// collapsed makes one line of what happened again and again: the same line in a row, and what controllers write many times, between two
// lines of another kind.
func collapsed(lines []Line) []Line {
	all := []Line{}
	open := map[string]int{}
	for _, line := range lines {
		key := fmt.Sprint(line.Source, "\x00", line.Who, "\x00", line.Impersonator, "\x00", line.Object, "\x00", line.UID, "\x00", line.What, "\x00", line.Text)
		if at, again := open[key]; again {
			all[at].Times += line.Times
			last := line.Time
			if line.Last != nil {
				last = *line.Last
			}
			all[at].Last = &last
			continue
		}
		if !line.routine() {
			clear(open)
		}
		open[key] = len(all)
		all = append(all, line)
	}
	return all
}

// statusWrite is in the text of every write of a status.
const statusWrite = " of status"

// routine tells a controller's way of keeping a status: KubeVirt's instances and Pods have theirs written all the time, and many a write
// meets another's.
func (l Line) routine() bool {
	part := strings.HasPrefix(l.Object, strings.ToLower(instanceKind)+"/") || strings.HasPrefix(l.Object, strings.ToLower(podKind)+"/")
	return l.What == Refused || l.What == Changed && (part || strings.Contains(l.Text, statusWrite))
}

// notKnown says what the sources cannot tell.
func (c *Collector) notKnown(records []*record) []string {
	list := []string{"Extensions: " + notExtended + "."}
	say := func(text string) { list = append(list, text) }
	if !c.reading.AuditLog {
		say("No audit log was read: who changed and who deleted what is not known, nor what was denied beyond the webhook's log.")
	} else if slices.ContainsFunc(records, func(r *record) bool { return r.bodiless && r.object.kind == machineKind }) {
		say("The audit log has entries of virtual machines at the level Metadata: it does not tell what they changed, nor whether a deletion that was not reviewed was a dry run.")
	}
	if c.reading.AuditLog {
		say("What happened while no audit log was written, or in one that was not given here.")
	}
	if c.reading.Once {
		say("What stdin told of a name before the first line that says whose it is: stdin is read once. A log given as a file is read again.")
	}
	if c.records.Dropped > 0 {
		say(fmt.Sprintf("%d older records are left out.", c.records.Dropped))
	}
	if c.facts == nil {
		say("The cluster was not asked: Events, annotations and the status of the passes are missing (--config).")
		return list
	}
	say("Events older than the API server keeps them, one hour by default.")
	for _, s := range c.facts.Statuses {
		if len(s.Passes) > 0 {
			oldest := s.Passes[len(s.Passes)-1].StartedAt
			say(fmt.Sprintf("Passes of %s before %s: the status ConfigMap has none older.", s.Environment, stamp(oldest)))
		}
	}
	return list
}
