package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// program is a command line with one command that takes a choice.
func program(t *testing.T, arguments ...string) (status int, stdout, stderr string) {
	t.Helper()
	root := &cobra.Command{Use: "program", Args: cobra.ArbitraryArgs, RunE: Group}
	list := &cobra.Command{Use: "list", Short: "List things", Args: NoArguments, RunE: func(*cobra.Command, []string) error { return nil }}
	list.Flags().String("output", "", "")
	list.Flags().String("config", "", "")
	list.Flags().String("environment", "", "")
	Choices(list, "output", "table", "json")
	CompleteFrom(list, "environment", func(command *cobra.Command) []string {
		config, err := command.Flags().GetString("config")
		if err != nil {
			t.Error(err)
		}
		return []string{"prod-of-" + config}
	})
	root.AddCommand(list)
	AddCommon(root)
	var out, wrong bytes.Buffer
	root.SetOut(&out)
	status = Run(root, arguments, &wrong)
	return status, out.String(), wrong.String()
}

func TestWhatAFlagTakesIsCompletedFromWhatTheCommandLineSaysAlready(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"a choice":          {[]string{"list", "--output", ""}, "table\njson\n:4\n"},
		"from another flag": {[]string{"list", "--config", "file", "--environment", ""}, "prod-of-file\n:4\n"},
		"a shell":           {[]string{"completion", ""}, "bash\nzsh\nfish\n:4\n"},
		"a command's help":  {[]string{"help", "l"}, "list\tList things\n:4\n"},
	} {
		if status, stdout, _ := program(t, append([]string{"__complete"}, c.arguments...)...); status != ExitOK || !strings.HasSuffix(stdout, c.want) {
			t.Errorf("%s: status %d, %q, want %q", name, status, stdout, c.want)
		}
	}
}

func TestCompletionIsPrintedForOneKnownShellAndAllElseIsWrongUse(t *testing.T) {
	for _, shell := range shells() {
		if status, stdout, _ := program(t, "completion", shell); status != ExitOK || !strings.Contains(stdout, "program") {
			t.Errorf("%s: status %d\n%s", shell, status, stdout)
		}
	}
	for _, arguments := range [][]string{{"completion"}, {"completion", "csh"}, {"completion", "bash", "zsh"}, {"help", "lost"}, {"help", "list", "all"}, {"lost"}} {
		if status, stdout, stderr := program(t, arguments...); status != ExitWrongUse || stdout != "" || !strings.Contains(stderr, "--help") {
			t.Errorf("%v: status %d\n%s%s", arguments, status, stdout, stderr)
		}
	}
	if status, stdout, _ := program(t, "help", "list"); status != ExitOK || !strings.Contains(stdout, "--output") {
		t.Errorf("help: status %d\n%s", status, stdout)
	}
}

func TestAnErrorIsShownToATerminalAndNotObeyedByIt(t *testing.T) {
	root := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error {
		return errors.New("two sessions have the id a\x1b[2Jb\u202ec\nand more")
	}}
	var stderr bytes.Buffer
	Run(root, nil, &stderr)
	if got, want := stderr.String(), "program: two sessions have the id a\\x1b[2Jb\\u202ec\nprogram: and more\n"; got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
}

func TestAMistypedCommandIsToldTheOneThatIsMeant(t *testing.T) {
	for _, arguments := range [][]string{{"lst"}, {"help", "lst"}} {
		if status, _, stderr := program(t, arguments...); status != ExitWrongUse || stderr != "program: there is no command \"lst\"; is it list?; see 'program --help'\n" {
			t.Errorf("%v: status %d\n%s", arguments, status, stderr)
		}
	}
}
