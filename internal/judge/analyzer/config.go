// Package analyzer is the on-node pipeline: it reads traces and returns records of outliers. It reads many ranks
// concurrently, step by step: all ranks learn a step, their models are merged, and all ranks judge the step by the merged
// models. The result does not depend on the number of workers, the order of the traces or timing.
package analyzer

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// Config configures an Analyzer. Start from Default.
type Config struct {
	// Unit is the unit of all times of the traces and of the settings.
	Unit    trace.Unit
	Outlier outlier.Config
	// Inclusive judges by inclusive instead of exclusive time.
	Inclusive bool
	// RankScope gives each rank separate models instead of common ones.
	RankScope bool
	// SkipFirst excludes the first call of a function on a thread, which may include compilation or set-up, from learning and judging.
	// For functions that wait for messages it excludes up to 16 calls before the thread's first collective call.
	SkipFirst bool
	// Window is the number of calls to keep before and after an anomaly.
	Window int
	// Passes is 1 to judge each step when it is read and to review the captures at the end, or 2 to learn the entire run first.
	Passes int
	// Review judges all captures again with the final model.
	Review bool
	// MinTime is the exclusive time, in ticks, below which anomalies are dropped.
	MinTime trace.Ticks
	// Workers is the number of ranks to process in parallel.
	Workers int
	// KeepOpen is the greatest number of traces with which all of them keep their files open and their memory between steps.
	KeepOpen int
	// StatePrefix is the prefix of counters that describe the state of the node.
	StatePrefix string
	// IgnoreCorrelation lists patterns of functions whose correlation IDs are ignored.
	IgnoreCorrelation []string
	// InitialModels are the models to start with, or nil.
	InitialModels *Models
	// Freeze judges by InitialModels only.
	Freeze bool
	// SpoolDir is the directory for captures until the end of the run.
	SpoolDir string
}

// Default returns the default settings for traces in microseconds.
func Default() Config { return DefaultIn(trace.Microsecond) }

// DefaultIn returns the default settings for traces with ticks of a unit.
func DefaultIn(unit trace.Unit) Config {
	return Config{
		Unit: unit, Outlier: outlier.DefaultIn(unit), SkipFirst: true, Window: 10, Passes: 1, Review: true,
		Workers: runtime.GOMAXPROCS(0), KeepOpen: 64, StatePrefix: "monitoring: ",
	}
}

// Validate reports all errors in the settings.
func (c Config) Validate() error {
	errs := []error{c.Outlier.Validate()}
	reject := func(invalid bool, format string, args ...any) {
		if invalid {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	reject(c.Window < 0, "window %d must not be negative", c.Window)
	reject(c.Passes != 1 && c.Passes != 2, "passes %d must be 1 or 2", c.Passes)
	reject(c.Workers < 1, "workers %d must be positive", c.Workers)
	reject(c.MinTime < 0, "minimum time %d must not be negative", c.MinTime)
	reject(c.InitialModels != nil && c.RankScope, "a loaded model covers all ranks and cannot start models of single ranks")
	reject(c.Freeze && c.InitialModels == nil, "freeze needs a model to load")
	return errors.Join(errs...)
}
