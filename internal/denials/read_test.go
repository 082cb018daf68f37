package denials

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttlab/vmwarden/internal/logs"
)

func TestOneDenialInBothLogsIsListedOnceWithWhatEachKnows(t *testing.T) {
	audit := []string{audited(noon, by("review-1", "CapVMs"), annotated("count", "8"), annotated("limit", "8"))}
	own := []string{logged(noon.Add(3 * time.Millisecond))}
	want := &Denial{
		Time: noon, Decision: "deny", Codes: []string{"CapVMs"}, Operation: "CREATE", Kind: "VirtualMachine", Namespace: "lab-vms",
		Name: "lab-a0000000", UID: "uid-1", Environment: "dev", Session: session, Requester: devBackend, RequesterKind: "Backend",
		Message: "CapVMs: namespace lab-vms has 8 virtual machines; try again", Count: "8", Limit: "8", Review: "review-1",
		AuditID: "audit-1", Sources: []string{AuditLog, OwnLog}, Later: Later{State: LaterNotSeen},
	}
	for name, logs := range map[string][][]string{
		"the audit log first": {audit, own}, "our own first": {own, audit}, "one file": {slices.Concat(own, audit)},
		"our own from two replicas, one twice": {own, audit, own},
	} {
		if diff := cmp.Diff(want, only(t, collected(t, Filter{}, logs...)), cmpopts.IgnoreUnexported(Denial{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// kube-apiserver takes a request's audit id from the header Audit-ID, if there is one.
func TestAClientThatRepeatsAnAuditIDHidesNothing(t *testing.T) {
	report := collected(t, Filter{}, []string{audited(noon, by("review-1", "CapVMs")), audited(noon, by("review-2", "CapVMs"))})
	if len(report.Denials) != 2 {
		t.Errorf("%d denials, want 2", len(report.Denials))
	}
}

func TestWhatWouldBeDeniedIsMarkedAndCountedApart(t *testing.T) {
	would := func(d document) { d["responseStatus"] = document{"code": 201} }
	report := collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs"), annotated("decision", "would-deny"), would),
		logged(noon.Add(time.Second), with("msg", "admission would be denied"), with("review", "review-2")),
	})
	if total := report.Total(); total.WouldDeny != 2 || total.Denied != 0 {
		t.Errorf("total = %+v", total)
	}
	for _, d := range report.Denials {
		if d.Decision != "would-deny" || d.Later.State != LaterAdmitted {
			t.Errorf("%+v", d)
		}
	}
}

// Of the many reviews of a deletecollection kube-apiserver keeps each annotation's first value.
func TestADeletecollectionWhoseFirstObjectWasAllowedIsADenialAllTheSame(t *testing.T) {
	denial := only(t, collected(t, Filter{}, []string{
		audited(noon, by("review-2", "EnvironmentForeign"), annotated("decision", "allow"), with("verb", "deletecollection"), named("")),
	}))
	if denial.Decision != "deny" || denial.Operation != "DELETE" || denial.Name != "" {
		t.Errorf("%+v", denial)
	}
}

func TestAnImpersonatorIsNamedBesideTheRequester(t *testing.T) {
	denial := only(t, collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs"), with("user", document{"username": "alice"}), with("impersonatedUser", document{"username": prodBackend})),
	}))
	if denial.Requester != prodBackend || denial.Impersonator != "alice" {
		t.Errorf("requester %q, impersonator %q", denial.Requester, denial.Impersonator)
	}
}

func TestTheRequestersOwnWordsAreShownWhereOnlyTheAuditLogTells(t *testing.T) {
	denial := only(t, collected(t, Filter{}, []string{audited(noon, by("review-1", "CapVMs"))}))
	if denial.Message != "CapVMs: in the requester's words (spec)" {
		t.Errorf("message = %q", denial.Message)
	}
}

func TestADryRunIsMarkedByEitherLog(t *testing.T) {
	report := collected(t, Filter{}, []string{
		audited(noon, by("review-1", "CapVMs"), annotated("dry-run", "true")),
		logged(noon, with("review", "review-2"), with("dryRun", true)),
	})
	for _, d := range report.Denials {
		if !d.DryRun {
			t.Errorf("not marked: %+v", d)
		}
	}
}

func TestOtherLinesOfBothLogsAreNoDenialsAndNotBroken(t *testing.T) {
	report := collected(t, Filter{}, []string{
		`{"level":"info","ts":"2026-11-29T12:00:00Z","msg":"starting"}`,
		`{"level":"info","ts":"2026-11-29T12:00:00Z","msg":"admission is a word","codes":[]}`,
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"update","requestObject":{"data":"validate.vmwarden.io/decision"}}`,
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","requestObject":{"annotations":{"validate.vmwarden.io/decision":"deny"}}}`,
		"", "  ", audited(noon),
	})
	if len(report.Denials) != 0 || len(report.Read.Broken) != 0 || !report.Read.AuditLog {
		t.Errorf("%+v", report)
	}
}

func TestCodesOfANewerVersionAreKeptAndNamed(t *testing.T) {
	report := collected(t, Filter{}, []string{audited(noon, by("review-1", "CapVMs,CapGPU"))})
	if denial := only(t, report); !slices.Equal(denial.Codes, []string{"CapVMs", "CapGPU"}) {
		t.Errorf("codes = %v", denial.Codes)
	}
	if !slices.Equal(report.Read.UnknownCodes, []string{"CapGPU"}) {
		t.Errorf("unknown codes = %v, want CapGPU", report.Read.UnknownCodes)
	}
}

// A line is cut off where a disk was full or a file was rotated in its middle.
func TestALineCutOffAnywhereIsCountedAndLosesNoOther(t *testing.T) {
	for _, line := range []string{audited(noon, by("review-1", "CapVMs")), logged(noon)} {
		for end := 1; end < len(line); end++ {
			report := collected(t, Filter{}, []string{logged(noon, with("review", "before")), line[:end], logged(noon, with("review", "after"))})
			if len(report.Denials) != 2 || len(report.Read.Broken) != 1 {
				t.Fatalf("cut off after %d bytes: %d denials, broken %v", end, len(report.Denials), report.Read.Broken)
			}
			if broken := report.Read.Broken[0]; broken.Input != "log-0" || broken.Lines != 1 || broken.First != 2 {
				t.Fatalf("cut off after %d bytes: broken = %+v", end, broken)
			}
		}
	}
}

func TestLinesThatAreNoJSONOrLackTheirTimeAreBroken(t *testing.T) {
	report := collected(t, Filter{}, []string{
		"panic: runtime error", `["validate.vmwarden.io/decision"]`, logged(noon, with("ts", "yesterday")), logged(noon, with("codes", []string{})),
		audited(noon, by("1", "CapVMs"), with("requestReceivedTimestamp", nil)), audited(noon, with("annotations", "validate.vmwarden.io/")), "\x00\x00\x00",
		strings.Replace(audited(noon), `"verb":"create"`, `"verb":{"validate.vmwarden.io/":1}`, 1),
	})
	if broken := report.Read.Broken; len(report.Denials) != 0 || len(broken) != 1 || broken[0].Lines != 8 || broken[0].First != 1 {
		t.Errorf("%d denials, broken %+v", len(report.Denials), broken)
	}
}

func TestALineThatIsTooLongIsBrokenAndTheNextIsRead(t *testing.T) {
	long := `{"requestObject":"` + strings.Repeat("x", logs.MaxLine) + `"}`
	report := collected(t, Filter{}, []string{long, logged(noon)})
	if broken := report.Read.Broken; len(report.Denials) != 1 || len(broken) != 1 || broken[0].First != 1 || !strings.Contains(broken[0].Why, "16 MiB") {
		t.Errorf("%d denials, broken %+v", len(report.Denials), report.Read.Broken)
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestAGzippedLogReadsAsThePlainOneWhateverItsName(t *testing.T) {
	text := audited(noon, by("review-1", "CapVMs")) + "\n"
	// Rotation may put one zipped file after the other.
	content := slices.Concat(zipped(t, text), zipped(t, logged(noon, with("review", "review-2"))))
	collector := NewCollector(Filter{}, DefaultLimit)
	if err := collector.Read("audit.log.1", bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if report := collector.Report(); len(report.Denials) != 2 || report.Read.Lines != 2 {
		t.Errorf("%+v", report)
	}
}

func TestAGzippedLogThatIsCutOffIsAnErrorAndKeepsWhatCameBefore(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(logged(noon.Add(time.Duration(i)*time.Second), with("review", time.Duration(i).String())) + "\n")
	}
	content := zipped(t, text.String())
	collector := NewCollector(Filter{}, DefaultLimit)
	err := collector.Read("audit.log.gz", bytes.NewReader(content[:len(content)/2]))
	if err == nil || !strings.Contains(err.Error(), "audit.log.gz") {
		t.Errorf("error = %v, want one that names the file", err)
	}
	if len(collector.Report().Denials) == 0 {
		t.Error("what came before was lost")
	}
}

func FuzzLinesNeverStopTheReader(f *testing.F) {
	f.Add([]byte(audited(noon, by("review-1", "CapVMs"))))
	f.Add([]byte(logged(noon)))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		collector := NewCollector(Filter{}, 10)
		// An error is one of unzipping; whatever it is, there is a report.
		_ = collector.Read("fuzzed", bytes.NewReader(content))
		report := collector.Report()
		for _, by := range append(Groupings(), "") {
			if err := report.WriteTable(io.Discard, by); err != nil {
				t.Error(err)
			}
		}
		if err := report.WritePage(io.Discard, Filter{}, noon); err != nil {
			t.Error(err)
		}
	})
}
