package reap

import (
	"slices"
	"strings"

	"github.com/ttlab/vmwarden/internal/config"
)

// secretsOfName finds the Secrets that are a session's by their name alone: they carry no session label, and no other
// environment's. The backend deletes them by name too; one that is left would give its old set-up to the next session of that
// name. A Secret that another live session's name would fit as well is kept.
func (v view) secretsOfName(row Session, owned []Object) []Object {
	machines := []string{row.VMName}
	for _, object := range owned {
		if object.Kind == VirtualMachine && object.Name != row.VMName {
			machines = append(machines, object.Name)
		}
	}
	var found []Object
	for _, name := range secretNames(v.settings.SecretNames, row.ID, machines) {
		secret, exists := v.secretsByName[name]
		if !exists || secret.Session != "" || (secret.Environment != "" && !v.ours(secret)) || v.secretNameClaims[name] > 1 {
			continue
		}
		found = append(found, secret)
	}
	return found
}

// secretNames fills the templates in for a session and its virtual machines. An empty name of a machine fills nothing in.
func secretNames(templates []string, session string, machines []string) []string {
	prefix := session[:min(config.SessionPrefixLength, len(session))]
	var names []string
	for _, template := range templates {
		for _, machine := range machines {
			if machine == "" && strings.Contains(template, config.MachinePlaceholder) {
				continue
			}
			name := strings.NewReplacer(
				config.SessionPlaceholder, session, config.SessionPrefixPlaceholder, prefix, config.MachinePlaceholder, machine,
			).Replace(template)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
