package reap

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/ttlab/vmwarden/internal/status"
)

// Record gives what the status ConfigMap keeps of the pass.
func (r Report) Record() status.Pass {
	pass := status.Pass{StartedAt: r.StartedAt, DurationSeconds: r.Duration.Seconds(), ExitStatus: r.ExitStatus(), Summary: map[string]status.Count{}}
	for _, direction := range Directions() {
		pass.Summary[string(direction)] = status.Count{Done: r.count(direction, Done), Kept: r.count(direction, Kept), Failed: r.count(direction, Failed)}
	}
	for _, hold := range r.Holds {
		pass.Holds = append(pass.Holds, status.Hold{Direction: string(hold.Direction), Cause: string(hold.Cause), Reason: hold.Reason})
	}
	for _, item := range r.Items {
		if item.Result == Failed {
			pass.Failures = append(pass.Failures, status.Failure{Direction: string(item.Direction), Session: item.Session, Detail: item.Detail})
		}
	}
	for _, notice := range r.Notices {
		pass.Notices = append(pass.Notices, status.Notice{What: notice.What, Reason: notice.Reason})
	}
	return pass
}

// maxTerminationMessage is how many bytes the kubelet keeps of a container's termination message.
const maxTerminationMessage = 4096

// TerminationMessage is the report in the words and the size that `kubectl describe pod` shows: the sum first, then what a
// person has to see to.
func (r Report) TerminationMessage() string {
	lines := []string{r.Document().sum()}
	for _, hold := range r.Holds {
		lines = append(lines, fmt.Sprintf("held back: %s (%s): %s", hold.Direction, hold.Cause, hold.Reason))
	}
	for _, item := range r.Items {
		if item.Result == Failed {
			lines = append(lines, fmt.Sprintf("failed: %s of session %s: %s", item.Direction, item.Session, item.Detail))
		}
	}
	for _, notice := range r.Notices {
		lines = append(lines, fmt.Sprintf("kept: %s %s", notice.What, notice.Reason))
	}
	return status.Shorten(strings.Join(lines, "\n")+"\n", maxTerminationMessage)
}

// Log writes what kept directions from being gone in and what was kept, a line each, and one line that sums up. The fields are
// a fixed schema.
func (r Report) Log(log *zap.Logger) {
	for _, hold := range r.Holds {
		log.Error("direction held back", zap.String("direction", string(hold.Direction)), zap.String("cause", string(hold.Cause)), zap.String("reason", hold.Reason))
	}
	for _, notice := range r.Notices {
		log.Warn("kept", zap.String("direction", string(notice.Direction)), zap.String("what", notice.What), zap.String("reason", notice.Reason))
	}
	log.Info(status.FinishedMessage, zap.String("environment", r.Environment), zap.Int("exitStatus", r.ExitStatus()), zap.Duration("duration", r.Duration),
		zap.Int("done", r.count("", Done)), zap.Int("kept", r.count("", Kept)), zap.Int("failed", r.count("", Failed)), zap.Int("held", len(r.Holds)), zap.Any("pass", r.Record().Bounded()))
}
