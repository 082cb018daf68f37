package reap

import (
	"time"

	"github.com/ttlab/vmwarden/internal/config"
	"github.com/ttlab/vmwarden/internal/lab"
)

// Settings is all of the configuration that a pass of one environment goes by.
type Settings struct {
	Environment      string
	Labels           lab.Labels
	Words            config.Statuses
	Runtimes         config.Runtimes
	VMNamespace      string
	OrphanMinimumAge time.Duration
	StartupGrace     time.Duration
	ItemTimeout      time.Duration
	PassTimeout      time.Duration
	Concurrency      int
	Brakes           config.Brakes
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
		ItemTimeout:      c.Reaping.ItemTimeout.Duration,
		PassTimeout:      c.Reaping.PassTimeout.Duration,
		Concurrency:      int(c.Reaping.Concurrency),
		Brakes:           c.Brakes,
		Released:         released,
	}
}
