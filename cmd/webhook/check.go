package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/cli"
	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/policy"
	"github.com/ttlab/vmwarden/internal/policy/offline"
	"github.com/ttlab/vmwarden/internal/terminal"
)

// checkOptions are check's flags.
type checkOptions struct {
	configFile string
	files      []string
	user       string
	groups     []string
	operation  string
	oldFile    string
	existing   []string
	machines   int
	orphan     bool
	output     string
}

// checkSettings is what the flags came to.
type checkSettings struct {
	config   *config.WardenConfig
	objects  []*unstructured.Unstructured
	old      []*unstructured.Unstructured
	existing []*unstructured.Unstructured
}

func newCheckCommand() *cobra.Command {
	var o checkOptions
	command := &cobra.Command{
		Use:   "check",
		Short: "Say offline what would be stamped or denied",
		Long: `Judges manifests by the very rules that the webhook serves, without a cluster: what would be added, and whether they would
be admitted. What the objects refer to is looked up among the objects of --existing alone.

Exit status: 0 when everything would be admitted, 1 when something would be denied, 2 for wrong use.`,
		Example: `  webhook check --config config.yaml -f vm.yaml --as system:serviceaccount:ttlab-dev:backend
  webhook check --config config.yaml -f vm.yaml --as system:serviceaccount:ttlab-prod:backend --vms 8
  webhook check --config config.yaml -f new.yaml --old stored.yaml --operation UPDATE --as alice -o json
  kubectl get vm -n lab-vms -o yaml | webhook check --config config.yaml -f vm.yaml --existing - --as alice`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			s, faults := o.complete(command.Context(), command.InOrStdin())
			if len(faults) > 0 {
				return cli.WrongUse(faults...)
			}
			return check(command.Context(), command.OutOrStdout(), o, s)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file (kind WardenConfig); required")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file with manifests, - for stdin; may be repeated; required")
	flags.StringVar(&o.user, "as", "", "user name of the requester, such as system:serviceaccount:ttlab-dev:backend; required")
	flags.StringArrayVar(&o.groups, "as-group", nil, "group of the requester; may be repeated")
	flags.StringVar(&o.operation, "operation", string(policy.Create), "CREATE, UPDATE or DELETE")
	flags.StringVar(&o.oldFile, "old", "", "file with the objects as they are stored, for UPDATE")
	flags.StringArrayVar(&o.existing, "existing", nil, "file with objects that exist already, - for stdin; may be repeated")
	flags.IntVar(&o.machines, "vms", 0, "number of virtual machines that exist, besides those of --existing")
	flags.BoolVar(&o.orphan, "orphan", false, "delete with propagationPolicy Orphan")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	cli.Choices(command, "output", "table", "json")
	cli.Choices(command, "operation", string(policy.Create), string(policy.Update), string(policy.Delete))
	cli.NoCompletion(command, "as", "as-group", "vms")
	return command
}

// complete reads all files and gives all faults at once.
func (o checkOptions) complete(ctx context.Context, stdin io.Reader) (checkSettings, []error) {
	var s checkSettings
	var faults []error
	s.config, faults = loadConfig(o.configFile)
	if o.user == "" {
		faults = append(faults, errors.New("--as is missing: name the requester, such as system:serviceaccount:ttlab-dev:backend"))
	}
	if len(o.files) == 0 {
		faults = append(faults, errors.New("-f is missing: name a file with manifests, or - for stdin"))
	}
	if o.output != "table" && o.output != "json" {
		faults = append(faults, fmt.Errorf("--output %q: use table or json", o.output))
	}
	if o.machines < 0 {
		faults = append(faults, fmt.Errorf("--vms %d: must not be negative", o.machines))
	}
	faults = append(faults, o.checkOperation()...)
	if namesTwice(slices.Concat(o.files, o.existing, []string{o.oldFile}), cli.Stdin) {
		// Whoever reads it second finds nothing.
		return s, append(faults, errors.New("-: stdin is named twice and can be read once; put one of the two into a file"))
	}
	read := func(flag string, files ...string) []*unstructured.Unstructured {
		objects, err := readManifests(ctx, stdin, flag, files)
		faults = append(faults, err...)
		return objects
	}
	s.objects, s.existing = read("-f", o.files...), read("--existing", o.existing...)
	if o.oldFile != "" {
		s.old = read("--old", o.oldFile)
	}
	for _, object := range s.objects {
		if o.operation == string(policy.Update) && find(s.old, object) == nil && o.oldFile != "" {
			faults = append(faults, fmt.Errorf("--old %s: has no %s %q", o.oldFile, object.GetKind(), object.GetName()))
		}
	}
	return s, faults
}

func (o checkOptions) checkOperation() []error {
	switch policy.Operation(o.operation) {
	case policy.Create, policy.Delete:
		if o.oldFile != "" {
			return []error{fmt.Errorf("--old goes with --operation UPDATE, not %s", o.operation)}
		}
	case policy.Update:
		if o.oldFile == "" {
			return []error{errors.New("--old is missing: name the file with the objects as they are stored")}
		}
	default:
		return []error{fmt.Errorf("--operation %q: use CREATE, UPDATE or DELETE", o.operation)}
	}
	return nil
}

func namesTwice(files []string, file string) bool {
	first := slices.Index(files, file)
	return first >= 0 && slices.Contains(files[first+1:], file)
}

// readManifests reads the files that a flag names. To judge one without a manifest would be to admit what was never seen; there may be
// nothing that exists already.
func readManifests(ctx context.Context, stdin io.Reader, flag string, files []string) ([]*unstructured.Unstructured, []error) {
	var objects []*unstructured.Unstructured
	var faults []error
	for _, file := range files {
		content, err := cli.ReadFile(ctx, flag, file, stdin)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		found, err := offline.Manifests(content)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s %s: no manifests in YAML or JSON: %w", flag, file, err))
		case len(found) == 0 && flag != "--existing":
			faults = append(faults, fmt.Errorf("%s %s: holds no manifest; write an object with apiVersion, kind and metadata", flag, file))
		}
		objects = append(objects, found...)
	}
	return objects, faults
}

func find(objects []*unstructured.Unstructured, like *unstructured.Unstructured) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == like.GetKind() && object.GetName() == like.GetName() {
			return object
		}
	}
	return nil
}

func check(ctx context.Context, out io.Writer, o checkOptions, s checkSettings) error {
	contract := s.config.Contract()
	world := &offline.World{Contract: contract, Existing: s.existing, Machines: o.machines, Limit: s.config.Caps.VMs}
	checker := offline.New(contract, world, clock.RealClock{})
	var outcomes []offline.Outcome
	denied := 0
	for _, object := range slices.Concat(s.objects, s.old, s.existing) {
		// Of what exists as of what is judged: what a manifest refers to would not be found else.
		if object.GetNamespace() == "" {
			object.SetNamespace(contract.VMNamespace)
		}
	}
	for _, object := range s.objects {
		outcome, err := checker.Check(ctx, offline.Request{
			Operation: policy.Operation(o.operation), User: o.user, Groups: o.groups, Object: object, Old: find(s.old, object), Orphan: o.orphan,
		})
		if err != nil {
			return cli.WrongUse(fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
		if !outcome.Allowed {
			denied++
		}
		outcomes = append(outcomes, outcome)
	}
	write := writeOutcomes
	if o.output == "json" {
		write = writeOutcomesJSON
	}
	if err := write(out, outcomes); err != nil {
		return err
	}
	if denied > 0 {
		return fmt.Errorf("%d of %d objects would be denied", denied, len(outcomes))
	}
	return nil
}

// describe names an object as kubectl does. A manifest that no API server has seen may have any text for a name.
func describe(outcome offline.Outcome) string {
	return terminal.Printable(strings.ToLower(outcome.Kind) + "/" + outcome.Name)
}
