package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withoutWrongTypes takes out of a JSON document what cannot be decoded into a WardenConfig, and says of each such value where it is
// and what it should be. The decoder alone would stop at the first, and without a path where a type decodes itself.
func withoutWrongTypes(document []byte) ([]byte, field.ErrorList, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	// A number stays as it was written: a budget is more exact than a float.
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return nil, nil, fmt.Errorf("not a %s: %w", Kind, err)
	}
	if _, fields := content.(map[string]any); !fields && content != nil {
		return nil, nil, fmt.Errorf("not a %s: it must hold fields, such as apiVersion and kind", Kind)
	}
	faults := takeWrongTypes(content, reflect.TypeFor[WardenConfig](), nil)
	pruned, err := json.Marshal(content)
	if err != nil {
		return nil, nil, fmt.Errorf("not a %s: %w", Kind, err)
	}
	return pruned, faults, nil
}

// takeWrongTypes takes out below a value of the right type what is of a wrong one.
func takeWrongTypes(value any, of reflect.Type, path *field.Path) field.ErrorList {
	of = dereferenced(of)
	var faults field.ErrorList
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			inner, known := fieldType(of, name)
			if !known {
				continue
			}
			at := child(path, of, name)
			if fault := wrongType(value[name], inner, at); fault != nil {
				faults = append(faults, fault)
				delete(value, name)
				continue
			}
			faults = append(faults, takeWrongTypes(value[name], inner, at)...)
		}
	case []any:
		for i := range value {
			at := path.Index(i)
			if fault := wrongType(value[i], of.Elem(), at); fault != nil {
				faults = append(faults, fault)
				// Left out, it would move those behind it to other paths.
				value[i] = nil
				continue
			}
			faults = append(faults, takeWrongTypes(value[i], of.Elem(), at)...)
		}
	}
	return faults
}

// wrongType says what a value should be, or nothing. What holds others is judged by its kind alone.
func wrongType(value any, of reflect.Type, path *field.Path) *field.Error {
	of = dereferenced(of)
	var ok bool
	switch {
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()), of.Kind() != reflect.Struct && of.Kind() != reflect.Map && of.Kind() != reflect.Slice:
		content, err := json.Marshal(value)
		ok = err == nil && json.Unmarshal(content, reflect.New(of).Interface()) == nil
	case value == nil:
		ok = true
	case of.Kind() == reflect.Slice:
		_, ok = value.([]any)
	default:
		_, ok = value.(map[string]any)
	}
	if ok {
		return nil
	}
	switch scalar := value.(type) {
	case json.Number:
		value = scalar.String()
	case map[string]any, []any:
		value = field.OmitValueType{}
	}
	return field.Invalid(path, value, "must be "+inWords(of))
}

// inWords says what a value of a type looks like in the file.
func inWords(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[metav1.Duration]():
		return "a duration, such as 90s, 15m or 3h"
	case reflect.TypeFor[Budget]():
		return fmt.Sprintf("a quantity, such as 16 or 48Gi, or %q", unlimited)
	case reflect.TypeFor[resource.Quantity]():
		return "a quantity, such as 1.5"
	}
	switch of.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text; put it into quotes"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "fields with values"
	}
	return "a whole number, without quotes"
}

func dereferenced(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Pointer {
		return of.Elem()
	}
	return of
}

// fieldType is the type of a field by its name in the file; unknown fields are the strict decoder's to tell.
func fieldType(of reflect.Type, name string) (reflect.Type, bool) {
	if of.Kind() == reflect.Map {
		return of.Elem(), true
	}
	for f := range of.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

func child(path *field.Path, of reflect.Type, name string) *field.Path {
	switch {
	case of.Kind() == reflect.Map:
		return path.Key(name)
	case path == nil:
		return field.NewPath(name)
	}
	return path.Child(name)
}

func sortedKeys(fields map[string]any) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// besides leaves out of what validation found what follows from values that are not there since they were of a wrong type.
func besides(found, wrongTypes field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(found, func(fault *field.Error) bool {
		return slices.ContainsFunc(wrongTypes, func(wrong *field.Error) bool {
			return fault.Field == wrong.Field || strings.HasPrefix(fault.Field, wrong.Field+".") || strings.HasPrefix(fault.Field, wrong.Field+"[")
		})
	})
}

// yamlFaults are the faults that the strict reading of YAML finds, such as each repeated field, one error each.
func yamlFaults(err error) []error {
	list, isList := strings.CutPrefix(err.Error(), "yaml: unmarshal errors:\n")
	if !isList {
		return []error{fmt.Errorf("not valid YAML: %w", err)}
	}
	var faults []error
	for fault := range strings.Lines(list) {
		faults = append(faults, errors.New(strings.TrimSpace(fault)))
	}
	return faults
}
