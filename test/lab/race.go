package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// buildFlags are what vmwarden's own binaries are built with.
func buildFlags() []string {
	if withRaceDetector {
		return []string{"-race"}
	}
	return nil
}

// raceEnvironment is what a process of vmwarden's own is told about races: it ends with the first, which it writes to a file beside its log. To the
// processes of a build without the detector it means nothing.
func (l *Lab) raceEnvironment() string {
	return "GORACE=halt_on_error=1 log_path=" + l.raceReports()
}

// raceReports is the path of the reports, to which each process adds its number.
func (l *Lab) raceReports() string { return filepath.Join(l.group.Directory(), "race-report") }

// races is an error that holds the report of every data race that a process of vmwarden's own has run into. Nobody else would tell: a replica that
// ended may have been killed by a test, and a pass that failed may have been meant to.
func (l *Lab) races() error {
	reports, err := filepath.Glob(l.raceReports() + ".*")
	if err != nil {
		return fmt.Errorf("looking for reports of races: %w", err)
	}
	var problems []error
	for _, report := range reports {
		content, err := os.ReadFile(report)
		if err != nil {
			return fmt.Errorf("reading the report of a race: %w", err)
		}
		problems = append(problems, fmt.Errorf("a process had a data race:\n%s", content))
	}
	return errors.Join(problems...)
}
