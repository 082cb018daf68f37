package controlplane

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// auditPolicyFor is the audit policy of every control plane, but that of these users every request is logged, what the policy leaves out for
// everybody else too.
func auditPolicyFor(users []string) ([]byte, error) {
	if len(users) == 0 {
		return auditPolicy, nil
	}
	var policy map[string]any
	if err := yaml.Unmarshal(auditPolicy, &policy); err != nil {
		return nil, fmt.Errorf("reading the audit policy: %w", err)
	}
	rules, ok := policy["rules"].([]any)
	if !ok {
		return nil, fmt.Errorf("the audit policy has no rules")
	}
	// The first rule that matches counts. Where a rule would log the request anyhow, it is the one that says how much of it.
	var first []any
	for _, rule := range rules {
		rule, ok := rule.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a rule of the audit policy is no object")
		}
		if rule["level"] == "None" {
			logged := map[string]any{"level": "Metadata", "users": users}
			for _, field := range []string{"resources", "verbs"} {
				if value, there := rule[field]; there {
					logged[field] = value
				}
			}
			first = append(first, logged)
		}
	}
	policy["rules"] = slices.Concat(first, rules)
	content, err := yaml.Marshal(policy)
	if err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return content, nil
}
