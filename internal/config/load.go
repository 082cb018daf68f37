package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxFileSize is the most that a ConfigMap can hold; a larger file is none of ours.
const maxFileSize = 1 << 20

// Load reads, defaults and validates the configuration file at path. Its error is an aggregate of every fault found, each
// with the path of its field. It does not name the file: the caller knows by what it was named.
func Load(path string) (*WardenConfig, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(err)
	}
	if info.IsDir() {
		return nil, errors.New("reading the configuration: it is a directory; name the file in it")
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("reading the configuration: it has %d bytes, and a ConfigMap holds at most %d; name a file of kind %s", info.Size(), maxFileSize, Kind)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return Parse(content)
}

// unreadable leaves the path out, which callers name with the flag.
func unreadable(err error) error {
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		err = system.Err
	}
	return fmt.Errorf("reading the configuration: %w", err)
}

// Parse decodes (strictly: an unknown or repeated field is an error that names it), defaults and validates a configuration.
func Parse(content []byte) (*WardenConfig, error) {
	var faults []error
	if err := expectOneDocument(content); err != nil {
		return nil, err
	}
	document, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		// The strict conversion is what finds a repeated key. The lenient one goes on, so that the other faults are told too.
		faults = append(faults, yamlFaults(err)...)
		if document, err = yaml.YAMLToJSON(content); err != nil {
			return nil, utilerrors.NewAggregate(faults)
		}
	}
	document, wrongTypes, err := withoutWrongTypes(document)
	if err != nil {
		return nil, utilerrors.NewAggregate(append(faults, err))
	}
	for _, fault := range wrongTypes {
		faults = append(faults, fault)
	}
	c := defaults()
	strictFaults, err := kjson.UnmarshalStrict(document, c)
	faults = append(faults, strictFaults...)
	if err != nil {
		return nil, utilerrors.NewAggregate(append(faults, fmt.Errorf("not a %s: %w", Kind, err)))
	}
	defaultLists(c)
	for _, fault := range besides(validate(c), wrongTypes) {
		faults = append(faults, fault)
	}
	if len(faults) > 0 {
		return nil, utilerrors.NewAggregate(faults)
	}
	return c, nil
}

// expectOneDocument refuses a second YAML document: the decoder would pass over it in silence, with all that it says.
func expectOneDocument(content []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	documents := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("not valid YAML: %w", err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents++
		}
		if documents > 1 {
			return fmt.Errorf("the configuration is more than one YAML document; put everything into one %s", Kind)
		}
	}
}

// Faults takes the error of Load or Parse apart: one error a fault.
func Faults(err error) []error {
	if aggregate, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		return aggregate.Errors()
	}
	return []error{err}
}
