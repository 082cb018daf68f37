package denials

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestADenialThatWentThroughLaterSaysWhenAndAtWhichTry(t *testing.T) {
	denied := []string{audited(noon, by("review-1", "CapVMs")), logged(noon.Add(time.Millisecond))}
	again := []string{
		audited(noon.Add(time.Minute), by("review-2", "CapReserved")),
		logged(noon.Add(time.Minute+time.Millisecond), with("review", "review-2"), with("codes", []string{"CapReserved"})),
	}
	allowed := []string{audited(noon.Add(2 * time.Minute)), audited(noon.Add(time.Hour))}
	// Whatever the order of the files, and whatever else is asked for.
	for i, logs := range [][][]string{{denied, again, allowed}, {allowed, again, denied}} {
		denial := only(t, collected(t, Filter{Codes: []string{"CapVMs"}}, logs...))
		at := noon.Add(2 * time.Minute)
		if diff := cmp.Diff(Later{State: LaterAllowed, At: &at, Retries: 2}, denial.Later); diff != "" {
			t.Errorf("order %d (-want +got):\n%s", i, diff)
		}
		if denial.Became() != "allowed 2m0s later, at try 3" {
			t.Errorf("order %d: %q", i, denial.Became())
		}
	}
}

func TestWhatIsNoRetryOfADenialDoesNotCountAsOne(t *testing.T) {
	later := noon.Add(time.Minute)
	for name, line := range map[string]string{
		"it was allowed before":         audited(noon.Add(-time.Minute)),
		"somebody else's":               audited(later, with("user", document{"username": prodBackend})),
		"another object":                audited(later, named("lab-b0000000")),
		"another operation":             audited(later, with("verb", "delete")),
		"a dry run":                     audited(later, annotated("dry-run", "true")),
		"refused by somebody behind us": audited(later, with("responseStatus", document{"code": 409})),
	} {
		denial := only(t, collected(t, Filter{}, []string{audited(noon, by("review-1", "CapVMs")), line}))
		if denial.Later != (Later{State: LaterNotSeen}) {
			t.Errorf("%s: %+v", name, denial.Later)
		}
	}
}

// Our own log knows that an apply creates; the audit log, which tells of what was allowed later, calls each a patch.
func TestAnApplyThatWasDeniedAndLaterAllowedWentThrough(t *testing.T) {
	denial := only(t, collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs"), with("verb", "patch")), logged(noon), audited(noon.Add(time.Minute), with("verb", "patch")),
	}))
	if denial.Operation != "CREATE" || denial.Later.State != LaterAllowed {
		t.Errorf("%s: %+v", denial.Operation, denial.Later)
	}
}

func TestWhatModeAuditLetsThroughIsADenialsWishComeTrue(t *testing.T) {
	later := noon.Add(time.Minute)
	would := func(d document) { d["responseStatus"] = document{"code": 201} }
	report := collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs")),
		logged(later, with("msg", "admission would be denied"), with("review", "review-2")),
		audited(later, by("review-2", "CapVMs"), annotated("decision", "would-deny"), would),
	})
	if first := report.Denials[0].Later; first.State != LaterAllowed || first.Retries != 1 {
		t.Errorf("%+v", first)
	}
}

func TestADenialThatIsOnlyTriedAgainSaysSo(t *testing.T) {
	report := collected(t, Filter{}, []string{audited(noon, by("review-1", "CapVMs")), audited(noon.Add(time.Minute), by("review-2", "CapVMs"))})
	if first, last := report.Denials[0].Later, report.Denials[1].Later; first != (Later{State: LaterDenied, Retries: 1}) || last != (Later{State: LaterNotSeen}) {
		t.Errorf("first %+v, last %+v", first, last)
	}
}

func TestWithoutAnAuditLogNobodyKnowsWhatBecameOfADenial(t *testing.T) {
	if denial := only(t, collected(t, Filter{}, []string{logged(noon)})); denial.Later.State != LaterUnknown {
		t.Errorf("%+v", denial.Later)
	}
	// An audit log with nothing of ours in it is one all the same.
	nothing := `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"create"}`
	if denial := only(t, collected(t, Filter{}, []string{logged(noon), nothing})); denial.Later.State != LaterNotSeen {
		t.Errorf("%+v", denial.Later)
	}
}

func TestBeyondTheLimitTheNewestAreKeptInWhateverOrderTheyCome(t *testing.T) {
	var lines []string
	for i := range 50 {
		lines = append(lines, logged(noon.Add(time.Duration(i*7%50)*time.Second), with("review", fmt.Sprint(i*7%50)), with("name", fmt.Sprint(i*7%50))))
	}
	collector := NewCollector(Filter{}, 4)
	if err := collector.Read("log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	report := collector.Report()
	var names []string
	for _, d := range report.Denials {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"46", "47", "48", "49"}) || report.Read.LeftOut != 46 {
		t.Errorf("kept %v, left out %d", names, report.Read.LeftOut)
	}
	if len(collector.byReview) != 4 {
		t.Errorf("%d reviews are remembered for 4 denials", len(collector.byReview))
	}
}

func TestWhatBecameOfADenialIsNotKnownWhereAttemptsWereForgotten(t *testing.T) {
	collector := NewCollector(Filter{}, DefaultLimit)
	collector.attempts.Limit = 2
	lines := []string{audited(noon, by("review-1", "CapVMs"))}
	for i := range 10 {
		lines = append(lines, audited(noon.Add(time.Duration(i)*time.Minute), named(fmt.Sprint("other-", i))))
	}
	lines = append(lines, audited(noon.Add(time.Hour), by("review-2", "CapVMs"), named("new")))
	if err := collector.Read("log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	report := collector.Report()
	if first, last := report.Denials[0].Later.State, report.Denials[1].Later.State; first != LaterUnknown || last != LaterNotSeen {
		t.Errorf("the first is %q, the last %q", first, last)
	}
	if report.Read.RememberedFrom.IsZero() {
		t.Error("the report does not say from when on it knows")
	}
}

func TestWhatWasAttemptedBeforeTheTimeAskedForTakesNoMemory(t *testing.T) {
	collector := NewCollector(Filter{Since: noon}, DefaultLimit)
	collector.attempts.Limit = 2
	lines := []string{audited(noon, by("review-1", "CapVMs"))}
	for i := range 10 {
		lines = append(lines, audited(noon.Add(-time.Duration(i+1)*time.Minute)))
	}
	if err := collector.Read("log", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	if report := collector.Report(); !report.Read.RememberedFrom.IsZero() || report.Denials[0].Later.State != LaterNotSeen {
		t.Errorf("remembered from %v, %+v", report.Read.RememberedFrom, report.Denials[0].Later)
	}
}

func TestEachFilterLeavesOutWhatIsNotAskedFor(t *testing.T) {
	logs := []string{
		logged(noon, with("review", "1")),
		logged(noon.Add(time.Hour), with("review", "2"), with("codes", []string{"SessionMissing", "OwnerMissing"}), with("environment", "prod"),
			with("requester", prodBackend), with("session", "")),
	}
	for name, c := range map[string]struct {
		filter Filter
		want   []string
	}{
		"all":           {Filter{}, []string{"1", "2"}},
		"since":         {Filter{Since: noon.Add(time.Hour)}, []string{"2"}},
		"until":         {Filter{Until: noon.Add(time.Hour)}, []string{"1"}},
		"a second code": {Filter{Codes: []string{"OwnerMissing"}}, []string{"2"}},
		"environment":   {Filter{Environments: []string{"dev", "test"}}, []string{"1"}},
		"requester":     {Filter{Requesters: []string{prodBackend}}, []string{"2"}},
		"session":       {Filter{Sessions: []string{session}}, []string{"1"}},
		"all together":  {Filter{Codes: []string{"CapVMs"}, Environments: []string{"prod"}}, nil},
	} {
		var got []string
		for _, d := range collected(t, c.filter, logs).Denials {
			got = append(got, d.Review)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestGroupsCountADenialForEachOfItsCodesAndADayOnlyOnce(t *testing.T) {
	report := collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs")), audited(noon.Add(time.Hour)),
		audited(noon.Add(24*time.Hour), by("review-2", "SessionMissing,CapVMs,CapVMs"), annotated("environment", "")),
	})
	for by, want := range map[string][]Group{
		"code":        {{Name: "CapVMs", Denied: 2, WentThrough: 1}, {Name: "SessionMissing", Denied: 1}},
		"environment": {{Name: "", Denied: 1}, {Name: "dev", Denied: 1, WentThrough: 1}},
		"requester":   {{Name: devBackend, Denied: 2, WentThrough: 1}},
		"day":         {{Name: "2026-11-29", Denied: 1, WentThrough: 1}, {Name: "2026-11-30", Denied: 1}},
	} {
		if diff := cmp.Diff(want, report.Groups(by)); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
	}
}
