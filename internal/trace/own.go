package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy"
)

// ownLine is what is read of a line of the webhook's or reapjob's log.
type ownLine struct {
	// What every line has, and what a denial has.
	policy.LoggedDenial

	// A machine that went, by the leader.
	Machine string    `json:"machine"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Asked   time.Time `json:"deletionAskedAt"`
	Gone    time.Time `json:"goneAt"`

	// An item of a pass.
	Direction string   `json:"direction"`
	Objects   []string `json:"objects"`
	Result    string   `json:"result"`
	Detail    string   `json:"detail"`
}

// readOwn makes records of a line of our own logs. They are JSON like the audit log, and say what they are by their message.
func (c *Collector) readOwn(line []byte) ([]*record, error) {
	var l ownLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, fmt.Errorf("reading a line of our own log: %w", err)
	}
	var list []*record
	switch {
	case isOurs(l.Message) != "":
		list = c.denied(l)
	case l.Message == lab.GoneMessage:
		list = c.seenGoing(l)
	case l.Message == lab.ItemMessage:
		list = c.finished(l)
	}
	if len(list) > 0 && l.Time.IsZero() {
		return nil, fmt.Errorf("a line %q has no ts", l.Message)
	}
	return list, nil
}

func (c *Collector) denied(l ownLine) []*record {
	o := object{kind: l.Kind, namespace: l.Namespace, name: l.Name}
	if !c.wanted.wants(o, l.Session) {
		return nil
	}
	what, text := isOurs(l.Message), "denied by "
	if what == WouldBeDenied {
		text = "would be denied by "
	}
	if l.DryRun {
		text = "dry run; " + text
	}
	r := &record{object: o, uid: l.UID, review: l.Review, codes: l.Codes, session: l.Session, environment: l.Environment}
	r.Line = Line{
		Time: l.Time, Times: 1, Source: WebhookLog, Who: l.Requester, Object: o.String(), What: what,
		Text: strings.ToLower(l.Operation) + " " + text + strings.Join(l.Codes, ", ") + ": " + l.Text, Reference: l.Review,
	}
	if l.Operation == string(policy.Create) && what == Denied {
		// The UID was of an object that never came to be.
		r.uid, r.before = "", true
	}
	return []*record{r}
}

// seenGoing is what the leader's watch saw.
func (c *Collector) seenGoing(l ownLine) []*record {
	o := object{kind: machineKind, name: l.Machine}
	if !c.wanted.wants(o, "") || l.Gone.IsZero() {
		return nil
	}
	r := &record{object: o, environment: l.Environment}
	r.Line = Line{
		Time: l.Gone, Times: 1, Source: WebhookLog, Who: "the leader's watch", Object: o.String(), What: Gone,
		Text: fmt.Sprintf("seen to be gone: %s, %s after it should have been", l.Reason, l.Gone.Sub(l.Since).Round(time.Second)),
	}
	if mark, err := (lab.Reaped{Reason: l.Reason, Since: l.Since, DeletionAskedAt: l.Asked}).Format(); err == nil {
		r.mark = mark
	}
	return []*record{r}
}

// finished is an item of a pass, once for every object of it that is wanted.
func (c *Collector) finished(l ownLine) []*record {
	var list []*record
	what := map[string]string{"Done": Reaped, "Kept": PassKept, "Failed": PassFailed}[l.Result]
	text := strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", l.Direction, l.Reason, l.Detail), "; ")
	add := func(o object) {
		r := &record{object: o, session: l.Session}
		r.Line = Line{Time: l.Time, Times: 1, Source: ReapjobLog, Who: "reapjob", Object: o.String(), What: what, Text: text}
		list = append(list, r)
	}
	for _, name := range l.Objects {
		kind, name, _ := strings.Cut(name, "/")
		if o := (object{kind: kind, name: name}); kind == machineKind && c.wanted.wants(o, l.Session) {
			add(o)
		}
	}
	if len(list) == 0 && c.wanted.sessions[l.Session] {
		add(object{kind: "Session", name: l.Session})
	}
	return list
}
