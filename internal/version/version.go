// Package version tells which build this is.
package version

import (
	"fmt"
	"runtime/debug"
)

// String is the module's version and the commit that it was built from, as far as the Go toolchain recorded them.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = ", modified"
		}
	}
	return fmt.Sprintf("%s (commit %s%s, %s)", info.Main.Version, revision, modified, info.GoVersion)
}
