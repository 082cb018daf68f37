package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxIdentifier is how many bytes of an identifier PostgreSQL keeps; it cuts a longer one off, and two could become one.
const maxIdentifier = 63

func validateDatabase(database Database, path *field.Path) field.ErrorList {
	faults := validateIdentifier(database.Table, path.Child("table"))
	if database.Schema != "" {
		faults = append(faults, validateIdentifier(database.Schema, path.Child("schema"))...)
	}
	columns := path.Child("columns")
	seen := sets.New[string]()
	for _, column := range []struct{ name, value string }{
		{"id", database.Columns.ID}, {"runtime", database.Columns.Runtime}, {"status", database.Columns.Status},
		{"vmName", database.Columns.VMName}, {"startedAt", database.Columns.StartedAt},
		{"expiresAt", database.Columns.ExpiresAt}, {"finishedAt", database.Columns.FinishedAt},
	} {
		faults = append(faults, validateIdentifier(column.value, columns.Child(column.name))...)
		if seen.Has(column.value) {
			faults = append(faults, field.Duplicate(columns.Child(column.name), column.value))
		}
		seen.Insert(column.value)
	}
	faults = append(faults, validateStatuses(database.Statuses, path.Child("statuses"))...)
	if database.Runtimes.VM == database.Runtimes.Pod {
		faults = append(faults, field.Duplicate(path.Child("runtimes", "pod"), database.Runtimes.Pod))
	}
	return faults
}

func validateIdentifier(value string, path *field.Path) field.ErrorList {
	if len(value) > maxIdentifier {
		return field.ErrorList{field.TooLong(path, value, maxIdentifier)}
	}
	if strings.ContainsRune(value, 0) {
		return field.ErrorList{field.Invalid(path, value, "must not contain a NUL byte")}
	}
	return nil
}

// validateStatuses insists on distinct words: if "running" also meant that a session is over, its virtual machine would be an
// orphan while the student works in it.
func validateStatuses(statuses Statuses, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	seen := sets.New[string]()
	claim := func(word string, path *field.Path) {
		if word == "" {
			faults = append(faults, field.Required(path, ""))
		}
		if seen.Has(word) {
			faults = append(faults, field.Duplicate(path, word))
		}
		seen.Insert(word)
	}
	claim(statuses.Starting, path.Child("starting"))
	claim(statuses.Running, path.Child("running"))
	claim(statuses.Expired, path.Child("expired"))
	claim(statuses.Failed, path.Child("failed"))
	for i, word := range statuses.Ended {
		claim(word, path.Child("ended").Index(i))
	}
	return faults
}
