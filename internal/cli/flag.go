package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says of a wrong flag what to write instead, where what the flags' library says is a word for programmers.
func flagError(command *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if form, known := forms[wrong.GetFlag().Value.Type()]; known {
			return fmt.Errorf("--%s %q: must be %s", wrong.GetFlag().Name, wrong.GetValue(), form)
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if name := longerName(command, unknown.GetSpecifiedName()); name != "" {
			return fmt.Errorf("%w; is it --%s?", err, name)
		}
	}
	return err
}

// forms are what values look like, by the type of their flag.
var forms = map[string]string{
	"int":      "a whole number, such as 8",
	"duration": "a duration, such as 90s, 15m or 3h",
	"bool":     "true or false",
}

// longerName is the flag that a shortened name can only mean, or nothing.
func longerName(command *cobra.Command, short string) string {
	var found []string
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if short != "" && strings.HasPrefix(flag.Name, short) {
			found = append(found, flag.Name)
		}
	})
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
