package config

import "github.com/ttlab/vmwarden/internal/lab"

// Contract gives the configuration in the lab's own words.
func (c *WardenConfig) Contract() lab.Contract {
	identities := lab.NewIdentities(c.Admins.Users, c.Admins.Groups)
	contract := lab.Contract{
		VMNamespace:   c.VMNamespace,
		PodNamespaces: c.PodNamespaces,
		Labels:        lab.Labels(c.Labels),
		SessionIDs:    lab.SessionIDFormat(c.SessionIDFormat),
		Lifetimes:     lab.Lifetimes{Ceiling: c.Lifetimes.Ceiling.Duration, DeadlineGrace: c.Lifetimes.DeadlineGrace.Duration},
		Identities:    identities,
	}
	for _, environment := range c.Environments {
		contract.Environments = append(contract.Environments, environment.Name)
		for _, backend := range environment.Backends {
			identities.Add(lab.ServiceAccount(backend), lab.Backend, environment.Name)
		}
		if environment.Reaper != nil {
			identities.Add(lab.ServiceAccount(*environment.Reaper), lab.Reaper, environment.Name)
		}
	}
	for _, controller := range c.TrustedControllers {
		identities.Add(lab.ServiceAccount(controller), lab.TrustedController, "")
	}
	return contract
}

// DefaultLabels are the lab's labels where no configuration names others.
func DefaultLabels() lab.Labels { return lab.Labels(defaults().Labels) }

// Environment finds an environment by its name.
func (c *WardenConfig) Environment(name string) (Environment, bool) {
	for _, environment := range c.Environments {
		if environment.Name == name {
			return environment, true
		}
	}
	return Environment{}, false
}
