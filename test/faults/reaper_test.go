package faults

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ttlab/vmwarden/test/lab"
)

// killAfter bounds a pass, on a machine however loaded: one that has to be killed has failed.
const killAfter = time.Minute

// reaper runs passes of one environment as its CronJob does. Its token and its files are made before anything breaks.
type reaper struct {
	environment string
	command     exec.Cmd
	// output receives what it writes; nil: nobody.
	output *os.File
	// cutShort, if set, says after how long a pass is killed.
	cutShort func() time.Duration
}

func newReapers(t *testing.T) []*reaper {
	t.Helper()
	var reapers []*reaper
	for _, environment := range lab.Environments {
		command, err := shared.ReapjobCommand(t.Context(), environment, shared.ReaperURL(environment), configuration, "run")
		if err != nil {
			t.Fatal(err)
		}
		reapers = append(reapers, &reaper{environment: environment, command: *command})
	}
	return reapers
}

// pass runs one pass and gives its exit status, -1 for one that was killed.
func (r *reaper) pass(ctx context.Context) int {
	limit := killAfter
	if r.cutShort != nil {
		limit = r.cutShort()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, r.command.Path, r.command.Args[1:]...)
	command.Env = r.command.Env
	if r.output != nil {
		command.Stdout, command.Stderr = r.output, r.output
	}
	_ = command.Run() // its status says it
	return command.ProcessState.ExitCode()
}
