package invariant

import (
	"slices"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
)

const (
	prodBackend = "system:serviceaccount:ttlab-prod:backend"
	devBackend  = "system:serviceaccount:ttlab-dev:backend"
	prodReaper  = "system:serviceaccount:ttlab-prod:reaper"
	devReaper   = "system:serviceaccount:ttlab-dev:reaper"
	session     = "a0000000-0000-4000-8000-000000000001"
	name        = "lab-a0000000"
)

var noon = time.Date(2026, 9, 12, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func configuration(t *testing.T) *config.WardenConfig {
	t.Helper()
	c, err := config.Parse([]byte(`
apiVersion: config.vmwarden.io/v1alpha1
kind: WardenConfig
vmNamespace: lab-vms
environments:
  - name: prod
    backends: [{namespace: ttlab-prod, name: backend}]
    reaper: {namespace: ttlab-prod, name: reaper}
    cap: 2
  - name: dev
    backends: [{namespace: ttlab-dev, name: backend}]
    reaper: {namespace: ttlab-dev, name: reaper}
caps: {vms: 3, session: 2}
reaping: {passTimeout: 55s}
`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// life is a history in which nothing is wrong: a session of prod comes, its machine is created, it ends, and is reaped.
func life(t *testing.T) *History {
	t.Helper()
	end := at(100)
	running := Row{Status: "running", ExpiresAt: &end, Rest: "{}"}
	expired := running
	expired.Status, expired.FinishedAt = "expired", new(at(110.2))
	return &History{
		Configuration: configuration(t), ReaperRole: "reaper", DeadlineSlack: time.Minute,
		Writes: []Write{
			created(1, prodBackend, "prod", session, name),
			{
				Verb: "patch", Username: prodReaper, Resource: "virtualmachines", Namespace: "lab-vms", Name: name,
				Arrived: at(110), Answered: at(110.05), Code: 200, Object: object("prod", session, prodBackend, name, at(1)),
			},
			deleted(110.1, prodReaper, name),
		},
		Changes: []Change{
			{Environment: "prod", At: at(0), By: "backend", Session: session, After: &running},
			{Environment: "prod", At: at(110.2), By: "reaper", Session: session, Before: &running, After: &expired},
		},
	}
}

func object(environment, session, by, name string, created time.Time) *Object {
	labels := map[string]string{"ttlab.io/lab": "true", "ttlab.io/env": environment, "ttlab.io/session": session}
	return &Object{UID: "uid-" + name, Labels: labels, TemplateLabels: labels, Annotations: map[string]string{
		lab.CreatedByAnnotation: by, lab.DeadlineAnnotation: lab.FormatDeadline(created.Add(195 * time.Minute)),
	}}
}

func created(second float64, by, environment, session, name string) Write {
	return Write{
		Verb: "create", Username: by, Resource: "virtualmachines", Namespace: "lab-vms", Name: name,
		Arrived: at(second), Answered: at(second + 0.05), Code: 201, BodyKnown: true, Object: object(environment, session, by, name, at(second)),
	}
}

func deleted(second float64, by, name string) Write {
	return Write{
		Verb: "delete", Username: by, Resource: "virtualmachines", Namespace: "lab-vms", Name: name,
		Arrived: at(second), Answered: at(second + 0.05), Code: 200, BodyKnown: true, Precondition: "uid-" + name,
	}
}

// amended is an admin's change of the machine.
func amended(second float64, to *Object) Write {
	return Write{
		Verb: "patch", Username: "root", Groups: []string{"system:masters"}, Resource: "virtualmachines", Namespace: "lab-vms", Name: name,
		Arrived: at(second), Answered: at(second + 0.05), Code: 200, Object: to,
	}
}

func (h *History) write(writes ...Write) {
	h.Writes = append(h.Writes, writes...)
	slices.SortStableFunc(h.Writes, func(a, b Write) int { return a.Answered.Compare(b.Answered) })
}

// broken gives the names of the invariants that were broken, each once.
func broken(h *History) []string {
	var names []string
	for _, violation := range Check(h).Violations {
		if !slices.Contains(names, violation.Invariant) {
			names = append(names, violation.Invariant)
		}
	}
	return names
}

func TestALifeInOrderBreaksNothing(t *testing.T) {
	verdict := Check(life(t))
	if len(verdict.Violations) > 0 {
		t.Errorf("violations: %+v", verdict.Violations)
	}
	if verdict.Machines != 1 || verdict.Deletions != 1 || verdict.Changes != 2 || verdict.Writes != 3 {
		t.Errorf("judged was %+v", verdict)
	}
}

func TestEachInvariantIsSeenToBeBroken(t *testing.T) {
	later := at(1000)
	for what, c := range map[string]struct {
		breaks func(h *History)
		want   string
	}{
		"the session was extended before": {func(h *History) {
			extended := *h.Changes[0].After
			extended.ExpiresAt = &later
			h.Changes[1] = Change{Environment: "prod", At: at(109), By: "backend", Session: session, Before: h.Changes[0].After, After: &extended}
		}, LiveSession},
		"the session has an unknown word": {func(h *History) {
			h.Changes = h.Changes[:1]
			h.Changes[0].After.Status = "paused"
		}, LiveSession},
		"the session has no end": {func(h *History) {
			h.Changes = h.Changes[:1]
			h.Changes[0].After.ExpiresAt = nil
		}, LiveSession},
		"the other reaper deletes it":  {func(h *History) { h.Writes[2].Username = devReaper }, EnvironmentForeign},
		"the other backend deletes it": {func(h *History) { h.Writes[2].Username = devBackend }, EnvironmentForeign},
		"the other backend changes it": {func(h *History) { h.Writes[1].Username = devBackend }, EnvironmentForeign},
		"a Secret of the other's is deleted": {func(h *History) {
			secret := Write{Verb: "create", Username: devBackend, Resource: "secrets", Namespace: "lab-vms", Name: "s", Arrived: at(2), Answered: at(3), Code: 201, Environment: "dev", Session: "x"}
			h.write(secret, Write{Verb: "delete", Username: prodReaper, Resource: "secrets", Namespace: "lab-vms", Name: "s", Arrived: at(4), Answered: at(5), Code: 200})
		}, EnvironmentForeign},
		"the namespace is too full": {func(h *History) {
			for i, other := range []string{"b", "c", "d"} {
				h.write(created(10+float64(i), devBackend, "dev", other, "lab-"+other))
			}
		}, Cap},
		"the environment is too full": {func(h *History) {
			h.write(created(10, prodBackend, "prod", "b", "lab-b"), created(11, prodBackend, "prod", "c", "lab-c"))
		}, Cap},
		"the session has too many": {func(h *History) {
			h.Configuration.Caps.Session = 1
			h.write(created(10, prodBackend, "prod", session, name+"-n1"))
		}, Cap},
		"it lives past its deadline": {func(h *History) {
			h.Writes = h.Writes[:1]
			h.Changes = h.Changes[:1]
			h.write(created(4*3600, devBackend, "dev", "b", "lab-b"))
		}, Deadline},
		"no environment is stamped":       {func(h *History) { h.Writes[0].Object = object("", session, prodBackend, name, at(1)) }, Stamp},
		"another environment is stamped":  {func(h *History) { h.Writes[0].Username = devBackend }, Stamp},
		"somebody else is said to be it":  {func(h *History) { h.Writes[0].Object.Annotations[lab.CreatedByAnnotation] = devBackend }, Stamp},
		"the template lacks the session":  {func(h *History) { h.Writes[0].Object.TemplateLabels = nil }, Stamp},
		"there is no deadline":            {func(h *History) { delete(h.Writes[0].Object.Annotations, lab.DeadlineAnnotation) }, Stamp},
		"the deadline is too late":        {func(h *History) { h.Writes[0].Object = object("prod", session, prodBackend, name, at(1000)) }, Stamp},
		"the session's label is changed":  {func(h *History) { h.Writes[1].Object = object("prod", "b", prodBackend, name, at(1)) }, Immutable},
		"the environment's is taken away": {func(h *History) { h.Writes[1].Object = object("", session, prodBackend, name, at(1)) }, Immutable},
		"it is deleted by a deadline that an admin put off": {func(h *History) {
			h.Changes = h.Changes[:1]
			h.Changes[0].After.ExpiresAt = nil
			h.Writes[0].Object.Annotations[lab.DeadlineAnnotation] = lab.FormatDeadline(at(90))
			h.write(amended(50, object("prod", session, prodBackend, name, at(1))))
		}, LiveSession},
		"somebody else puts off what an admin did": {func(h *History) {
			h.write(amended(50, object("prod", session, prodBackend, name, at(500))))
			h.Writes[2].Object = object("prod", session, prodBackend, name, at(900))
		}, Immutable},
		"the deadline is put off":           {func(h *History) { h.Writes[1].Object = object("prod", session, prodBackend, name, at(2)) }, Immutable},
		"nobody knows who deletes":          {func(h *History) { h.Writes[2].Username = "mallory" }, RequesterUnknown},
		"what was denied is done":           {func(h *History) { h.Writes[0].Denied = true }, Denial},
		"the deletion has no UID":           {func(h *History) { h.Writes[2].Precondition = "" }, DeletionPrecondition},
		"the deletion leaves orphans":       {func(h *History) { h.Writes[2].Orphans = true }, DeletionPrecondition},
		"a reaper deletes a volume":         {func(h *History) { h.Writes[2].Resource = "persistentvolumeclaims" }, DeletionReach},
		"a reaper deletes a collection":     {func(h *History) { h.Writes[2].Verb = "deletecollection" }, DeletionReach},
		"a reaper deletes elsewhere":        {func(h *History) { h.Writes[2].Namespace = "kube-system" }, DeletionReach},
		"the row is ended before its time":  {func(h *History) { h.Changes[1].Before.ExpiresAt = &later }, RowGuard},
		"a finished row is ended":           {func(h *History) { h.Changes[1].Before.Status = "finished" }, RowGuard},
		"the row is deleted":                {func(h *History) { h.Changes[1].After = nil }, RowGuard},
		"the row has no time of its end":    {func(h *History) { h.Changes[1].After.FinishedAt = nil }, RowGuard},
		"more of the row is changed":        {func(h *History) { h.Changes[1].After.Rest = `{"vm_name":"x"}` }, RowGuard},
		"the row is ended, the machine not": {func(h *History) { h.Writes = append(h.Writes[:2], deleted(110.3, prodReaper, name)) }, RowBeforeMachine},
	} {
		t.Run(what, func(t *testing.T) {
			h := life(t)
			c.breaks(h)
			if got := broken(h); !slices.Contains(got, c.want) {
				t.Errorf("broken are %v, want %s", got, c.want)
			}
		})
	}
}

func TestWhatIsNotCertainIsNotHeldAgainstAnybody(t *testing.T) {
	for what, happens := range map[string]func(h *History){
		"the student extends while the deletion is under way": func(h *History) {
			extended := *h.Changes[0].After
			extended.ExpiresAt = new(at(1000))
			h.Changes[1] = Change{Environment: "prod", At: at(110.12), By: "backend", Session: session, Before: h.Changes[0].After, After: &extended}
		},
		"the row was deleted": func(h *History) {
			h.Changes[1] = Change{Environment: "prod", At: at(50), By: "backend", Session: session, Before: h.Changes[0].After}
		},
		"it is past its deadline": func(h *History) {
			h.Changes = h.Changes[:1]
			h.Changes[0].After.ExpiresAt = nil
			h.Writes[0].Object.Annotations[lab.DeadlineAnnotation] = lab.FormatDeadline(at(90))
			h.Writes[1].Object.Annotations[lab.DeadlineAnnotation] = lab.FormatDeadline(at(90))
		},
		"the answer to a deletion was lost, and its place taken": func(h *History) {
			lost := deleted(20, prodBackend, name)
			lost.Code = 500
			h.write(lost, created(30, devBackend, "dev", "b", "lab-b"), created(31, devBackend, "dev", "c", "lab-c"), created(32, devBackend, "dev", "d", "lab-d"))
		},
		"the API server died, and the machine was not heard of again": func(h *History) {
			h.Interruptions = []time.Time{at(20)}
			h.Writes, h.Changes = h.Writes[:1], h.Changes[:1]
			h.write(created(30, devBackend, "dev", "b", "lab-b"), created(31, devBackend, "dev", "c", "lab-c"), created(32, devBackend, "dev", "d", "lab-d"))
		},
		"the name has another's object meanwhile": func(h *History) {
			h.Writes[2].Username, h.Writes[2].Precondition = devReaper, ""
			h.Writes[2].BodyKnown = false
			again := created(110.1, devBackend, "dev", "b", name)
			again.Object.UID = "another"
			h.write(again)
		},
		"an admin puts the deadline off, and it lives on": func(h *History) {
			h.Writes, h.Changes = h.Writes[:1], h.Changes[:1]
			later := object("prod", session, prodBackend, name, at(5*3600))
			byBackend := amended(60, later)
			byBackend.Username, byBackend.Groups = prodBackend, nil
			h.write(amended(50, later), byBackend, created(4*3600, devBackend, "dev", "b", "lab-b"))
		},
		"two environments have a session of one id": func(h *History) {
			h.Configuration.Caps.Session = 1
			h.write(created(10, devBackend, "dev", session, "lab-b"))
		},
		"only a dry run": func(h *History) {
			foreign := deleted(50, devReaper, name)
			foreign.DryRun = true
			h.write(foreign)
		},
		"a refusal": func(h *History) {
			foreign := deleted(50, devReaper, name)
			foreign.Code, foreign.Denied = 403, true
			h.write(foreign)
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := life(t)
			happens(h)
			if violations := Check(h).Violations; len(violations) > 0 {
				t.Errorf("violations: %+v", violations)
			}
		})
	}
}

// A machine of which nothing was heard after an API server died does not count; one that was does.
func TestAMachineThatIsHeardOfAgainCountsOn(t *testing.T) {
	h := life(t)
	h.Interruptions = []time.Time{at(20)}
	h.write(created(30, devBackend, "dev", "b", "lab-b"), created(31, devBackend, "dev", "c", "lab-c"), created(32, devBackend, "dev", "d", "lab-d"))
	if got := broken(h); !slices.Contains(got, Cap) {
		t.Errorf("broken are %v, want %s: the reaper marked the machine afterwards", got, Cap)
	}
}
