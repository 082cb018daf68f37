package config

import "github.com/ttlab/vmwarden/internal/lab"

// Contract gives the configuration in the lab's own words.
func (c *WardenConfig) Contract() lab.Contract {
	identities := lab.NewIdentities(c.Admins.Users, c.Admins.Groups)
	contract := lab.Contract{
		VMNamespace:   c.VMNamespace,
		PodNamespaces: c.PodNamespaces,
		Labels:        lab.Labels{Lab: c.Labels.Lab, LabValue: c.Labels.LabValue, Session: c.Labels.Session, Environment: c.Labels.Environment, Golden: c.Labels.Golden},
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

// Environment finds an environment by its name.
func (c *WardenConfig) Environment(name string) (Environment, bool) {
	for _, environment := range c.Environments {
		if environment.Name == name {
			return environment, true
		}
	}
	return Environment{}, false
}
