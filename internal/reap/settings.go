package reap

import (
	"time"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
)

// maxReportTimeout is how much of a pass's time is kept free for its reports.
const maxReportTimeout = 10 * time.Second

// Settings is all of the configuration that a pass of one environment goes by.
type Settings struct {
	Environment      string
	Labels           lab.Labels
	Words            config.Statuses
	Runtimes         config.Runtimes
	VMNamespace      string
	OrphanMinimumAge time.Duration
	StartupGrace     time.Duration
	// SecretNames are the templates of the names that a session's Secrets have.
	SecretNames []string
	ItemTimeout time.Duration
	// PassTimeout bounds everything, ReportTimeout the part of it that is left to the reports.
	PassTimeout   time.Duration
	ReportTimeout time.Duration
	Concurrency   int
	Brakes        config.Brakes
	// Released are the brakes that an admin lets this one pass through.
	Released []BrakeName
}

// NewSettings takes an environment's settings from the configuration.
func NewSettings(c *config.WardenConfig, environment string, released []BrakeName) Settings {
	return Settings{
		Environment:      environment,
		Labels:           c.Contract().Labels,
		Words:            c.Database.Statuses,
		Runtimes:         c.Database.Runtimes,
		VMNamespace:      c.VMNamespace,
		OrphanMinimumAge: c.Reaping.OrphanMinimumAge.Duration,
		StartupGrace:     c.Reaping.StartupGrace.Duration,
		SecretNames:      c.Reaping.SecretNames,
		ItemTimeout:      c.Reaping.ItemTimeout.Duration,
		PassTimeout:      c.Reaping.PassTimeout.Duration,
		ReportTimeout:    min(maxReportTimeout, c.Reaping.PassTimeout.Duration/4),
		Concurrency:      int(c.Reaping.Concurrency),
		Brakes:           c.Brakes,
		Released:         released,
	}
}
