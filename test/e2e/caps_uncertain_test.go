package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// refuseLists takes the webhook's right to list virtual machines and instances away until the test ends, and waits until it is so.
func refuseLists(t *testing.T) {
	t.Helper()
	setLists(t, false)
	t.Cleanup(func() {
		setLists(t, true)
		err := wait.PollUntilContextCancel(contextAfter(t), 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return probeUncounted(ctx, t, false) == nil, nil
		})
		if err != nil {
			t.Fatalf("waiting until the webhook counts again: %v", err)
		}
	})
	await(t, "the webhook's lists are refused", func(ctx context.Context) error { return probeUncounted(ctx, t, true) })
}

// setLists gives or takes the verb list on KubeVirt's resources. What a virtual machine refers to can be looked up all the while.
func setLists(t *testing.T, allowed bool) {
	t.Helper()
	roles := clients(t).RbacV1().Roles(lab.VMNamespace)
	role, err := roles.Get(contextAfter(t), "vmwarden-webhook-lab", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range role.Rules {
		rule := &role.Rules[i]
		if !slices.Contains(rule.Resources, "virtualmachines") {
			continue
		}
		rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == "list" })
		if allowed {
			rule.Verbs = append(rule.Verbs, "list")
		}
	}
	if _, err := roles.Update(contextAfter(t), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// probeUncounted asks, by a dry run, whether the virtual machines cannot be counted.
func probeUncounted(ctx context.Context, t *testing.T, want bool) error {
	t.Helper()
	prod, heard := warned(ctx, t, "prod")
	o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('J', 999), Environment: "prod"})
	_, err := prod.CreateObject(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	got := heard.contain("could not be counted") || (err != nil && strings.Contains(err.Error(), "CapUnknown"))
	if got != want {
		return errors.Join(errors.New("not yet"), err)
	}
	return nil
}

func TestWithoutRightsToCountACreateIsDenied(t *testing.T) {
	clean(t)
	refuseLists(t)
	expectDenied(t, "a create that cannot be counted", createAs(t, "prod", sessionID('J', 0)), "CapUnknown")
}

func TestWithoutRightsToCountACreateIsAdmittedWhereTheConfigurationSaysSo(t *testing.T) {
	clean(t)
	reconfigure(t, withCaps(t, "cpu: 40, whenUncertain: Allow"))
	refuseLists(t)
	prod, heard := warned(t.Context(), t, "prod")
	o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('J', 1), Environment: "prod"})
	if _, err := prod.CreateObject(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Errorf("a create that cannot be counted, under Allow: %v", err)
	}
	if !heard.contain("could not be counted") {
		t.Error("no warning tells that the virtual machines could not be counted")
	}
}

// The API server hangs for the replicas alone. Were their decision as long as the API server's patience, the requester would read
// that a webhook did not answer, and not why.
func TestWithAnAPIServerThatHangsForUsTheRequesterReadsOurAnswerInTime(t *testing.T) {
	clean(t)
	for i, whenUncertain := range []string{"Deny", "Allow"} {
		t.Run(whenUncertain, func(t *testing.T) {
			reconfigure(t, withCaps(t, "cpu: 40, whenUncertain: "+whenUncertain))
			t.Cleanup(shared.Webhook.ResumeLinks)
			shared.Webhook.PauseLinks()
			// More than one at a time: whoever waits for another's decision has no more time than others.
			answers := burst(t, 6, func(j int, environment string) *unstructured.Unstructured {
				// It refers to nothing that would have to be looked up first.
				return object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('K', 100*i+j), Environment: environment}, volumes())
			})
			for _, err := range answers {
				if whenUncertain == "Allow" {
					if err != nil {
						t.Errorf("under Allow: %v", err)
					}
					continue
				}
				expectDenied(t, "a create while the API server hangs", err, "CapUnknown")
				if err != nil && !strings.Contains(err.Error(), "could not be counted within 8s") {
					t.Errorf("the denial does not say that the time was up: %v", err)
				}
			}
		})
	}
}

func TestWhatCannotBeLookedUpIsDeniedInTimeWhateverTheCapSays(t *testing.T) {
	clean(t)
	reconfigure(t, withCaps(t, "cpu: 40, whenUncertain: Allow"))
	t.Cleanup(shared.Webhook.ResumeLinks)
	shared.Webhook.PauseLinks()
	// The backend's own machine names a Secret: whose that is cannot be said now.
	o := object(t, backend.VMContainerDisk, backend.Lesson{Session: sessionID('K', 900), Environment: "prod"})
	_, err := shared.Backends["prod"].CreateObject(t.Context(), o, metav1.CreateOptions{})
	expectDenied(t, "a create while the API server hangs", err, "Undecided")
}
