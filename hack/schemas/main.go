// Command schemas writes the JSON schemas by which kubeconform checks what the chart renders: of Kubernetes' own kinds from the
// description that a release publishes, of others from their CustomResourceDefinitions. They are strict: a field that a kind does not
// have is a fault, as it is to an API server that is asked to validate strictly.
package main

import (
	"flag"
	"fmt"
	"os"
)

// location is where kubeconform finds the schema of a kind below the directory. The core group is named by its version, as in v1/pod-v1.json.
const location = "{{.Group}}/{{.ResourceKind}}-{{.ResourceAPIVersion}}.json"

func main() {
	directory := flag.String("o", "", "directory to write to; required")
	swagger := flag.String("swagger", "", "Kubernetes' api/openapi-spec/swagger.json; required")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: schemas -o DIRECTORY -swagger FILE DEFINITION...\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *directory == "" || *swagger == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*directory, *swagger, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, *directory+"/"+location)
}
