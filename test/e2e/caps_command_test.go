package e2e

import (
	"encoding/json"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
	"github.com/ttlab/vmwarden/test/lab"
)

func caps(t *testing.T, arguments ...string) lab.Run {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := shared.ControlPlane.WriteKubeconfig(kubeconfig, shared.Admin); err != nil {
		t.Fatal(err)
	}
	config := write(t, "config.yaml", lab.Config)
	run, err := shared.Binary(t.Context(), "webhook", append([]string{"caps", "--config", config, "--kubeconfig", kubeconfig}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCapsPrintsWhatTheCapsHold(t *testing.T) {
	clean(t)
	fill(t, 'S', 2)
	if err := createAs(t, "dev", sessionID('S', 2)); err != nil {
		t.Fatal(err)
	}
	run := caps(t, "-o", "json")
	expectExit(t, run, cli.ExitOK)
	var report policy.CapReport
	if err := json.Unmarshal([]byte(run.Stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, run.Stdout)
	}
	places := func(used, limit int) policy.PlacesReport { return policy.PlacesReport{Used: used, Limit: &limit} }
	want := policy.CapReport{
		Namespace: lab.VMNamespace, VMs: places(3, capacity),
		Environments: []policy.OfEnvironment{{Environment: "prod", PlacesReport: policy.PlacesReport{Used: 2}}, {Environment: "dev", PlacesReport: policy.PlacesReport{Used: 1}}},
		Sessions: []policy.OfSession{
			{Environment: "dev", Session: sessionID('S', 2), PlacesReport: places(1, 3)},
			{Environment: "prod", Session: sessionID('S', 0), PlacesReport: places(1, 3)},
			{Environment: "prod", Session: sessionID('S', 1), PlacesReport: places(1, 3)},
		},
		CPU:    &policy.BudgetReport{Used: 3 * 2006, Limit: 40000},
		Memory: &policy.BudgetReport{Used: 3 * 4628762881, Limit: 48 << 30},
		// The deadline is the API server's to date.
		NextDeadline: report.NextDeadline, Reservation: report.Reservation,
	}
	report.VMs.Reserved, want.VMs.Reserved = 0, 0
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if report.NextDeadline == "" {
		t.Error("the report tells no next deadline")
	}
	table := caps(t)
	expectExit(t, table, cli.ExitOK)
	for _, part := range []string{"namespace lab-vms", "environment prod", "session dev/" + sessionID('S', 2), "CPU requests", "6.018", "The next deadline is"} {
		if !strings.Contains(table.Stdout, part) {
			t.Errorf("the table does not contain %q:\n%s", part, table.Stdout)
		}
	}
	expectExit(t, caps(t, "-o", "yaml"), cli.ExitWrongUse)
}

func TestTheMetricsTellWhatTheCapsHold(t *testing.T) {
	clean(t)
	fill(t, 'T', 2)
	// Whoever decided last has counted the first.
	expectDenied(t, "more than the session may have", func() error {
		for i := range 4 {
			if err := createAs(t, "prod", sessionID('T', 0), withName("lab-t"+string(rune('a'+i)))); err != nil {
				return err
			}
		}
		return nil
	}(), "CapSession")
	var all strings.Builder
	for _, replica := range shared.Webhook.Replicas() {
		all.WriteString(get(t, "http://"+replica.MetricsAddress+"/metrics"))
	}
	for _, part := range []string{
		`vmwarden_cap_places{environment="prod",state="used"} 4`, `vmwarden_cap_places{environment="dev",state="used"} 0`,
		`vmwarden_cap_limit{environment=""} 8`, `vmwarden_cap_cpu_cores{state="limit"} 40`, `vmwarden_cap_cpu_cores{state="used"} 8.024`,
		`vmwarden_cap_memory_bytes{state="limit"} 5.1539607552e+10`, "vmwarden_cap_conflicts_total", "vmwarden_cap_attempts_count",
		`vmwarden_cap_decision_seconds_count{outcome="counted"}`,
	} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("no replica's metrics contain %s", part)
		}
	}
}

// calls counts requests by method and resource.
type calls struct {
	next  http.RoundTripper
	mutex sync.Mutex
	made  []string
}

func (c *calls) RoundTrip(request *http.Request) (*http.Response, error) {
	c.mutex.Lock()
	c.made = append(c.made, request.Method+" "+path.Base(request.URL.Path))
	c.mutex.Unlock()
	return c.next.RoundTrip(request)
}

type unseeing struct{}

func (unseeing) Seen(types.UID) bool { return false }

func TestADecisionIsOneReadOneListOfEachKindAndOneWrite(t *testing.T) {
	config := shared.ControlPlane.AdminConfig()
	counter := &calls{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { counter.next = next; return counter })
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// A namespace that the replicas do not look at.
	const namespace = lab.PodNamespace
	l := &ledger.Ledger{
		Book:    &ledger.ConfigMapBook{ConfigMaps: core.CoreV1().ConfigMaps(namespace), Log: zap.NewNop()},
		Census:  &ledger.MetadataCensus{Client: lists, Namespace: namespace, Reader: ledger.Reader{Deadline: func(map[string]string) time.Time { return time.Time{} }}},
		Witness: unseeing{}, Limits: ledger.Limits{VMs: 2}, Reservation: time.Minute, Clock: clock.RealClock{},
	}
	t.Cleanup(func() {
		if err := core.CoreV1().ConfigMaps(namespace).Delete(contextAfter(t), ledger.ConfigMapName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	want := [][]string{
		{"GET vmwarden-ledger", "GET virtualmachines", "GET virtualmachineinstances", "POST configmaps"},
		{"GET vmwarden-ledger", "GET virtualmachines", "GET virtualmachineinstances", "PUT vmwarden-ledger"},
		{"GET vmwarden-ledger", "GET virtualmachines", "GET virtualmachineinstances"},
	}
	for i, expected := range want {
		counter.made = nil
		if _, err := l.Decide(t.Context(), ledger.Claim{Name: string(rune('a' + i)), UID: types.UID(rune('a' + i))}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(counter.made, expected) {
			t.Errorf("decision %d made the calls %v, want %v", i+1, counter.made, expected)
		}
	}
}
