package cli

import (
	"fmt"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// NewLogger makes the JSON log on stderr, at a level such as "info" or "debug", and hands it to the libraries too.
func NewLogger(level string) (*zap.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	configuration := zap.NewProductionConfig()
	configuration.Level = zap.NewAtomicLevelAt(parsed)
	configuration.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	// Sampling drops lines that look alike. Two denials look alike, and an auditor needs both.
	configuration.Sampling = nil
	// What panicked brings its stack along; any other line's says nothing that the line does not.
	configuration.DisableStacktrace = true
	logger, err := configuration.Build()
	if err != nil {
		return nil, fmt.Errorf("setting up the log: %w", err)
	}
	ctrllog.SetLogger(zapr.NewLogger(logger))
	klog.SetLogger(zapr.NewLogger(logger))
	return logger, nil
}
