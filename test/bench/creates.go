package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
	"github.com/ttlab/vmwarden/test/process"
)

// variant is a namespace that is guarded in one way.
type variant struct{ name, namespace string }

// The variants. Each has a namespace of its own, all of them one API server.
var (
	bare       = variant{"nothing", "bench-bare"}
	byPolicy   = variant{"a ValidatingAdmissionPolicy with the label rules", "bench-policy"}
	idle       = variant{"a webhook pair that does nothing", "bench-idle"}
	rulesAlone = variant{"all rules, no caps", "bench-rules"}
	everything = variant{"all rules and the exact caps", lab.VMNamespace}
)

// measureCreates measures the creation of a virtual machine through kube-apiserver.
func measureCreates(ctx context.Context, s sizes, r *report) error {
	return withStage(ctx, 1, func(st *stage) (err error) {
		group, err := process.NewGroup("", "vmwarden-bench")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, group.Close()) }()
		if err := st.guard(ctx, group); err != nil {
			return err
		}
		creates := &creates{stage: st, pause: s.pause}
		// What is made at the first use, connections and compiled conditions, is no part of a create.
		all := []variant{bare, byPolicy, idle, rulesAlone, everything}
		if _, err := creates.measure(ctx, 5, all); err != nil {
			return err
		}
		took, err := creates.measure(ctx, s.rounds, all)
		if err != nil {
			return err
		}
		for i, variant := range all {
			r.note("create, guarded by "+variant.name, "p50 %.1f ms, p90 %.1f ms, %.2f × bare", milliseconds(took[i].median()), milliseconds(took[i].at(90)), took[i].over(took[0]))
		}
		r.atMost("all rules, no caps / pair that does nothing", took[3].over(took[2]), 1.1, "")
		r.atMost("all rules and caps / pair that does nothing", took[4].over(took[2]), 1.5, "")
		if err := st.populate(ctx, backend.VMGolden, "prod", 1, s.standing+1); err != nil {
			return err
		}
		pairOf := []variant{bare, everything}
		if took, err = creates.measure(ctx, s.rounds, pairOf); err != nil {
			return err
		}
		r.note(fmt.Sprintf("the same with %d standing", s.standing), "p50 %.1f ms, p90 %.1f ms", milliseconds(took[1].median()), milliseconds(took[1].at(90)))
		r.atMost(fmt.Sprintf("all rules and caps with %d standing / bare", s.standing), took[1].over(took[0]), 2.2, "")
		return nil
	})
}

// guard makes the variants' namespaces and what guards them.
func (s *stage) guard(ctx context.Context, group *process.Group) error {
	// The API server is to ask the one replica itself.
	if err := s.Webhook.Unregister(ctx); err != nil {
		return err
	}
	if err := s.Webhook.Run(ctx, configuration(1000, 4), 1); err != nil {
		return err
	}
	if err := s.Webhook.RegisterFirst(ctx); err != nil {
		return err
	}
	for _, v := range []variant{bare, byPolicy, idle, rulesAlone} {
		if err := s.openNamespace(ctx, v.namespace); err != nil {
			return err
		}
	}
	if err := s.addPolicy(ctx, byPolicy.namespace); err != nil {
		return err
	}
	address, err := startServer(ctx, group, s.Lab)
	if err != nil {
		return err
	}
	if err := s.RegisterOther(ctx, "bench-idle", idle.namespace, address+idlePath); err != nil {
		return err
	}
	if err := s.RegisterOther(ctx, "bench-rules", rulesAlone.namespace, address+rulesPath); err != nil {
		return err
	}
	return s.awaitGuards(ctx)
}

// addPolicy makes the API server judge the labels of virtual machines by itself.
func (s *stage) addPolicy(ctx context.Context, namespace string) error {
	const name = "bench-labels"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{machines.Group}, APIVersions: []string{"*"}, Resources: []string{machines.Resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{
				{Expression: `has(object.metadata.labels) && 'ttlab.io/lab' in object.metadata.labels && object.metadata.labels['ttlab.io/lab'] == 'true'`},
				{Expression: `has(object.metadata.labels) && 'ttlab.io/session' in object.metadata.labels && object.metadata.labels['ttlab.io/session'].matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')`},
				{Expression: `has(object.metadata.labels) && 'ttlab.io/env' in object.metadata.labels && request.userInfo.username == 'system:serviceaccount:ttlab-' + object.metadata.labels['ttlab.io/env'] + ':backend'`},
			},
		},
	}
	admission := s.clients.AdmissionregistrationV1()
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the policy: %w", err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding the policy: %w", err)
	}
	return nil
}

// awaitGuards waits until what was made guards: each of the three takes effect by a watch. The policy and the rules deny another environment's
// label; the pair that does nothing is registered in the same moment as the rules.
func (s *stage) awaitGuards(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, v := range []variant{byPolicy, rulesAlone} {
		foreign, err := objectOf(backend.VMGolden, v.namespace, "dev", 0)
		if err != nil {
			return err
		}
		for {
			if _, err := s.Backends["prod"].CreateObject(ctx, foreign, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s to take effect: %w", v.name, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// creates measures creates, each of a session of its own.
type creates struct {
	*stage
	pause time.Duration
	// last is the number of the session that was used last; those of standing machines are far below.
	last int
}

func (c *creates) measure(ctx context.Context, rounds int, variants []variant) ([]times, error) {
	return inTurns(rounds, len(variants), func(variant, _ int) (time.Duration, error) {
		return c.one(ctx, variants[variant].namespace)
	})
}

// one measures one create, and takes the virtual machine away again.
func (c *creates) one(ctx context.Context, namespace string) (time.Duration, error) {
	c.last++
	machine, err := objectOf(backend.VMGolden, namespace, "prod", 1<<20+c.last)
	if err != nil {
		return 0, err
	}
	if err := rest(ctx, c.pause); err != nil {
		return 0, err
	}
	prod := c.Backends["prod"]
	started := time.Now()
	if _, err := prod.CreateObject(ctx, machine, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("creating in namespace %s: %w", namespace, err)
	}
	took := time.Since(started)
	if err := prod.Machines(namespace).Delete(ctx, machine.GetName(), metav1.DeleteOptions{}); err != nil {
		return 0, fmt.Errorf("deleting in namespace %s: %w", namespace, err)
	}
	return took, nil
}
