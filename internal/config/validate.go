package config

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validate(c *WardenConfig) field.ErrorList {
	var faults field.ErrorList
	if c.APIVersion != APIVersion {
		faults = append(faults, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		faults = append(faults, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	if modes := []Mode{Enforce, Audit}; !sets.New(modes...).Has(c.Mode) {
		faults = append(faults, field.NotSupported(field.NewPath("mode"), c.Mode, modes))
	}
	faults = append(faults, validateNamespaces(c)...)
	faults = append(faults, validateLabels(c.Labels, field.NewPath("labels"))...)
	if formats := []string{"UUID", "Text"}; !sets.New(formats...).Has(c.SessionIDFormat) {
		faults = append(faults, field.NotSupported(field.NewPath("sessionIDFormat"), c.SessionIDFormat, formats))
	}
	faults = append(faults, validateIdentities(c)...)
	faults = append(faults, validateCaps(c.Caps, field.NewPath("caps"))...)
	faults = append(faults, validateLifetimes(c.Lifetimes, field.NewPath("lifetimes"))...)
	faults = append(faults, validateAdmins(c.Admins, field.NewPath("admins"))...)
	faults = append(faults, validateDatabase(c.Database, field.NewPath("database"))...)
	faults = append(faults, validateReaping(c.Reaping, field.NewPath("reaping"))...)
	faults = append(faults, validateBrakes(c.Brakes, field.NewPath("brakes"))...)
	return faults
}

func validateNamespaces(c *WardenConfig) field.ErrorList {
	faults := validateDNSLabel(c.VMNamespace, field.NewPath("vmNamespace"))
	seen := sets.New(c.VMNamespace)
	for i, namespace := range c.PodNamespaces {
		path := field.NewPath("podNamespaces").Index(i)
		faults = append(faults, validateDNSLabel(namespace, path)...)
		if seen.Has(namespace) {
			faults = append(faults, field.Duplicate(path, namespace))
		}
		seen.Insert(namespace)
	}
	return faults
}

func validateDNSLabel(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	for _, problem := range validation.IsDNS1123Label(value) {
		faults = append(faults, field.Invalid(path, value, problem))
	}
	return faults
}

func validateLabels(labels Labels, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := sets.New[string]()
	for _, key := range []struct{ name, value string }{
		{"lab", labels.Lab}, {"session", labels.Session}, {"environment", labels.Environment}, {"golden", labels.Golden},
	} {
		for _, problem := range validation.IsQualifiedName(key.value) {
			faults = append(faults, field.Invalid(path.Child(key.name), key.value, problem))
		}
		if seen.Has(key.value) {
			faults = append(faults, field.Duplicate(path.Child(key.name), key.value))
		}
		seen.Insert(key.value)
	}
	for _, problem := range validation.IsValidLabelValue(labels.LabValue) {
		faults = append(faults, field.Invalid(path.Child("labValue"), labels.LabValue, problem))
	}
	return faults
}

// validateIdentities checks that every ServiceAccount is well formed and stands for one thing: an account that is a backend
// of two environments would belong to neither.
func validateIdentities(c *WardenConfig) field.ErrorList {
	var faults field.ErrorList
	role := map[ServiceAccount]*field.Path{}
	claim := func(account ServiceAccount, path *field.Path) {
		faults = append(faults, validateDNSLabel(account.Namespace, path.Child("namespace"))...)
		if account.Name == "" {
			faults = append(faults, field.Required(path.Child("name"), ""))
		}
		for _, problem := range validation.IsDNS1123Subdomain(account.Name) {
			if account.Name != "" {
				faults = append(faults, field.Invalid(path.Child("name"), account.Name, problem))
			}
		}
		if first, taken := role[account]; taken {
			faults = append(faults, field.Invalid(path, account.Namespace+"/"+account.Name, fmt.Sprintf("is already %s; a ServiceAccount stands for one thing", first)))
			return
		}
		role[account] = path
	}

	environments := field.NewPath("environments")
	if len(c.Environments) == 0 {
		faults = append(faults, field.Required(environments, "name at least one environment, with its backends' ServiceAccounts"))
	}
	names := sets.New[string]()
	for i, environment := range c.Environments {
		path := environments.Index(i)
		// The name is a label's value and part of the name of the environment's status ConfigMap.
		faults = append(faults, validateDNSLabel(environment.Name, path.Child("name"))...)
		if names.Has(environment.Name) {
			faults = append(faults, field.Duplicate(path.Child("name"), environment.Name))
		}
		names.Insert(environment.Name)
		faults = append(faults, validateEnvironmentCap(environment.Cap, path.Child("cap"))...)
		if len(environment.Backends) == 0 {
			faults = append(faults, field.Required(path.Child("backends"), "without a backend nobody can create this environment's virtual machines"))
		}
		for j, backend := range environment.Backends {
			claim(backend, path.Child("backends").Index(j))
		}
		if environment.Reaper != nil {
			claim(*environment.Reaper, path.Child("reaper"))
		}
	}
	for i, controller := range c.TrustedControllers {
		claim(controller, field.NewPath("trustedControllers").Index(i))
	}
	return faults
}

func validateAtLeast(value, least time.Duration, path *field.Path) field.ErrorList {
	if value < least {
		return field.ErrorList{field.Invalid(path, value.String(), fmt.Sprintf("must be at least %s", least))}
	}
	return nil
}

func validateLifetimes(lifetimes Lifetimes, path *field.Path) field.ErrorList {
	faults := validateAtLeast(lifetimes.Ceiling.Duration, time.Minute, path.Child("ceiling"))
	return append(faults, validateAtLeast(lifetimes.DeadlineGrace.Duration, time.Second, path.Child("deadlineGrace"))...)
}

// validateAdmins refuses groups that kube-apiserver puts whole classes of users in: with them everybody would be an admin.
func validateAdmins(admins Admins, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i, group := range admins.Groups {
		if group == "" || group == "system:authenticated" || group == "system:unauthenticated" || strings.HasPrefix(group, "system:serviceaccounts") {
			faults = append(faults, field.Invalid(path.Child("groups").Index(i), group, "takes in everybody of a class; name a group of admins"))
		}
	}
	for i, user := range admins.Users {
		if user == "" || user == "system:anonymous" {
			faults = append(faults, field.Invalid(path.Child("users").Index(i), user, "name a user who signs in"))
		}
	}
	return faults
}

func validateReaping(reaping Reaping, path *field.Path) field.ErrorList {
	faults := validateAtLeast(reaping.OrphanMinimumAge.Duration, time.Second, path.Child("orphanMinimumAge"))
	faults = append(faults, validateAtLeast(reaping.StartupGrace.Duration, time.Second, path.Child("startupGrace"))...)
	faults = append(faults, validateAtLeast(reaping.ItemTimeout.Duration, time.Second, path.Child("itemTimeout"))...)
	faults = append(faults, validateAtLeast(reaping.PassTimeout.Duration, reaping.ItemTimeout.Duration, path.Child("passTimeout"))...)
	for i, template := range reaping.SecretNames {
		faults = append(faults, validateSecretName(template, path.Child("secretNames").Index(i))...)
	}
	if reaping.Concurrency < 1 || reaping.Concurrency > 64 {
		faults = append(faults, field.Invalid(path.Child("concurrency"), reaping.Concurrency, "must be from 1 to 64"))
	}
	return faults
}

// validateSecretName insists on a template that names one session's Secret: one without would name the same Secret for all.
func validateSecretName(template string, path *field.Path) field.ErrorList {
	filled := strings.NewReplacer(MachinePlaceholder, "x", SessionPlaceholder, "x", SessionPrefixPlaceholder, "x").Replace(template)
	if filled == template {
		return field.ErrorList{field.Invalid(path, template, fmt.Sprintf("must hold %s, %s or %s", MachinePlaceholder, SessionPlaceholder, SessionPrefixPlaceholder))}
	}
	var faults field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(filled) {
		faults = append(faults, field.Invalid(path, template, problem))
	}
	return faults
}

func validateBrakes(brakes Brakes, path *field.Path) field.ErrorList {
	faults := validateBrake(brakes.Orphans, path.Child("orphans"))
	faults = append(faults, validateBrake(brakes.Ghosts, path.Child("ghosts"))...)
	return append(faults, validateAtLeast(brakes.ClockDifference.Duration, time.Second, path.Child("clockDifference"))...)
}

func validateBrake(brake Brake, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if brake.MaxCount < 1 {
		faults = append(faults, field.Invalid(path.Child("maxCount"), brake.MaxCount, "must be at least 1"))
	}
	if brake.MaxSharePercent < 1 || brake.MaxSharePercent > 100 {
		faults = append(faults, field.Invalid(path.Child("maxSharePercent"), brake.MaxSharePercent, "must be from 1 to 100"))
	}
	if brake.ShareFloor < 1 {
		faults = append(faults, field.Invalid(path.Child("shareFloor"), brake.ShareFloor, "must be at least 1"))
	}
	return faults
}
