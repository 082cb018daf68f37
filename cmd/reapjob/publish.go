package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/internal/status"
)

// publish tells everybody what became of the pass, first where nothing can hang. What cannot be told somewhere is logged: the
// pass is over, and what it did stays done.
func publish(ctx context.Context, s settings, report reap.Report) {
	tell(s, report)
	core, err := corev1client.NewForConfig(s.cluster)
	if err != nil {
		s.log.Warn("neither status nor Events could be written", zap.Error(err))
		return
	}
	about, err := statusStore(core, s).Record(ctx, report.Record())
	if err != nil {
		s.log.Warn("the status could not be written; 'reapjob status' and the metrics do not know of this pass", zap.Error(err))
		about = corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.config.VMNamespace, Name: status.ConfigMapName(s.environment.Name)}
	}
	if err := reap.SendEvents(ctx, core, report.Events(about)); err != nil {
		s.log.Warn("not all Events could be written", zap.Error(err))
	}
}

// tell tells whoever sees this run: log, stdout and termination message.
func tell(s settings, report reap.Report) {
	report.Log(s.log)
	if err := printDocument(s, report.Document()); err != nil {
		s.log.Warn("the result could not be printed", zap.Error(err))
	}
	if err := writeTerminationMessage(s.terminationLog, report.TerminationMessage()); err != nil {
		s.log.Warn("the termination message could not be written", zap.Error(err))
	}
}

func statusStore(core corev1client.ConfigMapsGetter, s settings) status.Store {
	return status.Store{ConfigMaps: core.ConfigMaps(s.config.VMNamespace), Environment: s.environment.Name}
}

// writeTerminationMessage writes into a file that is there: the kubelet makes it, and outside of a container there is none.
func writeTerminationMessage(path, message string) (err error) {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the termination message: %w", err)
	}
	_, err = file.WriteString(message)
	return errors.Join(err, file.Close())
}
