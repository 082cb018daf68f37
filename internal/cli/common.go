package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// AddCommon adds what both command lines have besides their own commands: completion, and help that knows a wrong name. Cobra's own
// answer wrong use with exit status 0 or 1.
func AddCommon(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = true
	// It has none of its own that do anything.
	root.DisableFlagsInUseLine = true
	root.AddCommand(newCompletionCommand(root.Name()))
	root.SetHelpCommand(&cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Help about a command",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: commandNames,
		RunE: func(command *cobra.Command, arguments []string) error {
			found, rest, err := command.Root().Find(arguments)
			if err != nil || len(rest) > 0 {
				return noCommand(command.Root(), strings.Join(arguments, " "))
			}
			return found.Help()
		},
	})
}

func commandNames(command *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if len(arguments) == 0 {
		for _, other := range command.Root().Commands() {
			if other.IsAvailableCommand() {
				names = append(names, cobra.CompletionWithDesc(other.Name(), other.Short))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// shells are those for which there is completion, and what writes it.
func shells() []string { return []string{"bash", "zsh", "fish"} }

func newCompletionCommand(program string) *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells(), "|"),
		Short: "Print the completion script for a shell",
		Long: `Prints what makes a shell complete commands, flags and the values that flags take; --environment is completed from the configuration
that --config names before it. bash needs the package bash-completion.

Exit status: 0 when it was printed, 2 for wrong use.`,
		Example: strings.ReplaceAll(`  source <(PROGRAM completion bash)
  PROGRAM completion bash > ~/.local/share/bash-completion/completions/PROGRAM
  PROGRAM completion zsh > ~/.zsh/completions/_PROGRAM
  PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish`, "PROGRAM", program),
		Args:      cobra.ArbitraryArgs,
		ValidArgs: shells(),
		RunE: func(command *cobra.Command, arguments []string) error {
			root, out := command.Root(), command.OutOrStdout()
			switch strings.Join(arguments, " ") {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return WrongUse(fmt.Errorf("name one shell: %s; see '%s --help'", strings.Join(shells(), ", "), command.CommandPath()))
		},
	}
}

// Choices make a flag complete to one of some values. A flag that does not exist is the programmer's error.
func Choices(command *cobra.Command, flag string, values ...string) {
	complete(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func complete(command *cobra.Command, flag string, how cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, how); err != nil {
		panic(fmt.Sprintf("completing --%s of %s: %v", flag, command.Name(), err))
	}
}

// NoCompletion makes a flag complete to nothing, where files would be wrong.
func NoCompletion(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		complete(command, flag, cobra.NoFileCompletions)
	}
}

// CompleteFrom makes a flag complete to what a function finds when it is asked: what the command line says already is in command.
func CompleteFrom(command *cobra.Command, flag string, find func(command *cobra.Command) []string) {
	complete(command, flag, func(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return find(command), cobra.ShellCompDirectiveNoFileComp
	})
}

// LogLevels are those that NewLogger knows.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }
