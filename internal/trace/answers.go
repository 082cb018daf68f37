package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
)

// notExtended is why nobody but the backend knows of an extension.
const notExtended = "an extension is written to the sessions table alone, by the backend; no request of it reaches the API server"

func known(question string, source Source, at time.Time, who, text string) Answer {
	a := Answer{Question: question, Known: true, Who: who, Text: text, Source: source}
	if !at.IsZero() {
		a.Time = new(at.UTC())
	}
	return a
}

func unknown(question, why string) Answer { return Answer{Question: question, Text: why} }

// answers gives those to the questions for one machine.
func (c *Collector) answers(l *life) []Answer {
	return []Answer{
		c.whoCreated(l), c.whatWasStamped(l), c.whatWasDenied(l), c.whoChanged(l), c.howExtended(l), c.whenDue(l), c.whyReaped(l),
		c.whoAskedToDelete(l), c.whenGone(l),
	}
}

// silent says why no log tells.
func (c *Collector) silent() string {
	if c.reading.AuditLog {
		return "not in the audit log that was read"
	}
	return "no audit log was read"
}

func (c *Collector) whoCreated(l *life) Answer {
	if r := l.first(Created); r != nil {
		return known(Created, r.Source, r.Time, r.Who, r.Text)
	}
	state, source := l.state()
	who := ""
	if state != nil {
		who = state.Annotations[lab.CreatedByAnnotation]
	}
	switch {
	case l.there != nil && who != "":
		return known(Created, Annotation, l.there.CreationTimestamp.Time, who, "by "+lab.CreatedByAnnotation)
	case l.there != nil:
		return known(Created, Cluster, l.there.CreationTimestamp.Time, "", "by whom is not known: no "+lab.CreatedByAnnotation+", and "+c.silent())
	case who != "":
		return known(Created, source, time.Time{}, who, "when is "+c.silent())
	}
	return unknown(Created, c.silent())
}

func (c *Collector) whatWasStamped(l *life) Answer {
	if r := l.first(Stamped); r != nil {
		return known(Stamped, r.Source, r.Time, r.Who, r.Text)
	}
	state, source := l.state()
	if state == nil {
		return unknown(Stamped, c.silent())
	}
	var has []string
	for _, key := range []string{lab.CreatedByAnnotation, lab.DeadlineAnnotation} {
		if value := state.Annotations[key]; value != "" {
			has = append(has, key+"="+value)
		}
	}
	if value := state.Labels[c.options.Labels.Environment]; value != "" {
		has = append(has, c.options.Labels.Environment+"="+value)
	}
	if len(has) == 0 {
		return known(Stamped, source, time.Time{}, "", "nothing: it carries none of our annotations")
	}
	return known(Stamped, source, time.Time{}, "", "it carries "+strings.Join(has, ", ")+"; what of it the requester brought is told by the audit log alone")
}

func (c *Collector) whatWasDenied(l *life) Answer {
	counts := map[string]int{}
	var last *record
	for _, r := range l.records {
		if r.What != Denied {
			continue
		}
		when := "afterwards"
		if r.before {
			when = "before its creation"
		}
		counts[strings.Join(r.codes, ",")+" "+when]++
		last = r
	}
	if last == nil {
		if !c.reading.AuditLog {
			return unknown(Denied, c.silent())
		}
		return known(Denied, AuditLog, time.Time{}, "", "nothing, as far as the audit log goes")
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d × %s", counts[key], key))
	}
	return known(Denied, last.Source, last.Time, "", strings.Join(texts, ", ")+"; the last by "+last.Who)
}

func (c *Collector) whoChanged(l *life) Answer {
	counts := map[string]int{}
	var last *record
	for _, r := range l.all(Changed) {
		if strings.Contains(r.Text, statusWrite) || strings.HasPrefix(r.Text, "dry run") {
			continue
		}
		counts[r.Who]++
		last = r
	}
	switch {
	case last == nil && !c.reading.AuditLog:
		return unknown(Changed, c.silent())
	case last == nil:
		return known(Changed, AuditLog, time.Time{}, "", "by nobody, as far as the audit log goes (a reaper's annotation and status apart)")
	}
	var texts []string
	for _, who := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d × by %s", counts[who], who))
	}
	return known(Changed, AuditLog, last.Time, "", strings.Join(texts, ", ")+"; the last at the time told here")
}

// howExtended says what follows from when the session ended, since nobody tells of an extension.
func (c *Collector) howExtended(l *life) Answer {
	why := notExtended
	mark, source, reaped := l.mark()
	if reaped && mark.Reason == "expired" {
		why += fmt.Sprintf("; the session ended at %s by the reaper's mark (%s)", stamp(mark.Since), source)
		if l.first(Created) != nil || l.there != nil {
			why += ", " + after(mark.Since.Sub(l.from())) + " the machine's creation"
		}
		if c.options.Lifetimes.Ceiling > 0 {
			why += fmt.Sprintf("; extensions reach %s from the start at most", c.options.Lifetimes.Ceiling)
		}
	}
	return unknown(Extended, why)
}

func after(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " before"
	}
	return d.Round(time.Second).String() + " after"
}

func (c *Collector) whenDue(l *life) Answer {
	state, source := l.state()
	if state == nil {
		if r := l.first(Stamped); r != nil {
			return unknown(Due, "what was stamped tells it, if the level of the audit log does")
		}
		return unknown(Due, c.silent())
	}
	value, there := state.Annotations[lab.DeadlineAnnotation]
	if !there {
		return known(Due, source, time.Time{}, "", "it has no deadline")
	}
	deadline, err := lab.ParseDeadline(value)
	if err != nil {
		return known(Due, source, time.Time{}, "", err.Error())
	}
	text := "the deadline, by which it has to be gone whatever happens"
	if limits := c.options.Lifetimes; limits.Ceiling > 0 && (l.first(Created) != nil || l.there != nil) {
		if ours := limits.Deadline(l.from()); deadline.After(ours.Add(sameMoment)) {
			text += fmt.Sprintf("; by the configuration of now it would be %s", stamp(ours))
		}
	}
	return known(Due, source, deadline, "", text)
}

func (c *Collector) whyReaped(l *life) Answer {
	if mark, source, ok := l.mark(); ok {
		return known(Reaped, source, mark.Since, "", mark.Reason+", since the time told here")
	}
	if r := l.first(Reaped); r != nil {
		return known(Reaped, r.Source, time.Time{}, r.Who, r.Text)
	}
	for _, r := range l.all(Told) {
		if text, found := strings.CutPrefix(r.Text, "Reaped: "); found {
			return known(Reaped, r.Source, time.Time{}, r.Who, text)
		}
	}
	asked := l.first(DeletionAsked)
	switch {
	case asked == nil && l.there != nil && l.there.DeletionTimestamp == nil:
		return known(Reaped, Cluster, time.Time{}, "", "not reaped: nobody asked for its deletion")
	case asked == nil:
		return unknown(Reaped, c.silent())
	case c.role(asked.Who) == lab.Reaper:
		return unknown(Reaped, "its reaper asked for the deletion; why is told by its annotation, which no source shows")
	case c.role(asked.Who) == "":
		return unknown(Reaped, "no reaper's mark is known; whether "+asked.Who+" is one, a configuration would tell (--config)")
	}
	return known(Reaped, asked.Source, time.Time{}, "", "no reaper asked for its deletion")
}

// role is what somebody is by the configuration; empty where there is none.
func (c *Collector) role(who string) lab.RequesterKind {
	if c.options.Identities == nil {
		return ""
	}
	return c.options.Identities.Classify(who, nil).Kind
}

func (c *Collector) whoAskedToDelete(l *life) Answer {
	if r := l.first(DeletionAsked); r != nil {
		text := r.Text
		if role := c.role(r.Who); role != "" && role != lab.Unknown {
			text = strings.TrimPrefix(text+", as a "+string(role), ", ")
		}
		return known(DeletionAsked, r.Source, r.Time, r.Who, text)
	}
	if mark, source, ok := l.mark(); ok {
		return known(DeletionAsked, source, mark.DeletionAskedAt, "", "by the reaper's mark, when a pass first asked")
	}
	if l.there != nil {
		if l.there.DeletionTimestamp == nil {
			return known(DeletionAsked, Cluster, time.Time{}, "", "no")
		}
		return known(DeletionAsked, Cluster, l.there.DeletionTimestamp.Time, "", "by whom is "+c.silent())
	}
	return unknown(DeletionAsked, c.silent())
}

// whenGone goes by the best evidence that there is, and says which.
func (c *Collector) whenGone(l *life) Answer {
	if r := l.first(Gone); r != nil {
		return known(Gone, r.Source, r.Time, r.Who, r.Text)
	}
	if l.there != nil {
		text := "it is still there"
		if l.there.DeletionTimestamp != nil {
			text = fmt.Sprintf("it is still there, deleting, held by finalizers %v", l.there.Finalizers)
		}
		return known(Gone, Cluster, time.Time{}, "", text)
	}
	if l.next != nil {
		return known(Gone, AuditLog, time.Time{}, "", "before "+stamp(l.next.from())+", when its name was used again; when exactly no source tells")
	}
	if !l.hasBegun() {
		return known(Gone, l.records[0].Source, time.Time{}, "", "it never came to be, as far as is known")
	}
	if c.facts != nil && c.facts.Looked && c.facts.Namespace == l.namespace {
		return known(Gone, Cluster, time.Time{}, "", "before "+stamp(c.facts.At)+", when the cluster did not have it; when exactly no source tells")
	}
	return unknown(Gone, "no source tells that it is: neither the answer to a deletion, nor the end of its last finalizer, nor the webhook's log, nor the cluster")
}

// stamp writes a time as exactly as it is known: kube-apiserver's log has microseconds, Events and annotations have seconds.
func stamp(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
