// Package analyzer is the on-node pipeline: traces in, records of the few
// executions that do not fit out. It reads many ranks at once, step by step:
// all ranks learn a step, what they learned is merged, and all judge the step
// by it. The result does not depend on the number of workers, on the order of
// the traces or on timing.
package analyzer

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Config says how to analyze.
type Config struct {
	Outlier outlier.Config
	// Inclusive judges by inclusive instead of exclusive time.
	Inclusive bool
	// RankScope gives each rank models of its own instead of common ones.
	RankScope bool
	// SkipFirst neither learns nor judges the first call of a function on a
	// thread, which may contain its compilation or set-up, nor, of functions that
	// wait for messages, up to 16 before the thread's first collective call.
	SkipFirst bool
	// Window is how many calls before and after an anomaly are kept.
	Window int
	// Passes is 1 to judge each step as it is read and review all that was
	// kept at the end, or 2 to learn the whole run first.
	Passes int
	// Review judges all that was kept once more with the final model.
	Review bool
	// MinTime is the exclusive time below which anomalies are not kept.
	MinTime trace.Micros
	// Workers is how many ranks are worked on at once.
	Workers int
	// KeepOpen is how many traces keep their files open and all the memory
	// that they once needed; when there are more, none does.
	KeepOpen int
	// StatePrefix begins the names of counters that tell the node's state.
	StatePrefix string
	// Uncoupled are patterns of functions whose correlation ids are ignored.
	Uncoupled []string
	// Learned is a model to begin with; nil: none.
	Learned *Models
	// Freeze judges by Learned alone.
	Freeze bool
	// SpoolDir is a directory for what is kept until the end of the run.
	SpoolDir string
}

// Default returns the usual settings.
func Default() Config {
	usual := outlier.Default()
	usual.SlowOnly = waits
	return Config{
		Outlier: usual, SkipFirst: true, Window: 10, Passes: 1, Review: true,
		Workers: runtime.GOMAXPROCS(0), KeepOpen: 64, StatePrefix: "monitoring: ",
	}
}

// waits tells functions that only wait for others.
func waits(name string) bool { return provenance.WaitOf(name) != provenance.NoWait }

// Validate says all that is wrong with the settings.
func (c Config) Validate() error {
	errs := []error{c.Outlier.Validate()}
	if c.Window < 0 {
		errs = append(errs, fmt.Errorf("window %d is negative", c.Window))
	}
	if c.Passes != 1 && c.Passes != 2 {
		errs = append(errs, fmt.Errorf("passes %d is neither 1 nor 2", c.Passes))
	}
	if c.Workers < 1 {
		errs = append(errs, fmt.Errorf("workers %d is not positive", c.Workers))
	}
	if c.MinTime < 0 {
		errs = append(errs, fmt.Errorf("minimum time %d is negative", c.MinTime))
	}
	if c.Learned != nil && c.RankScope {
		errs = append(errs, errors.New("a loaded model is of all ranks; models for each rank cannot begin with it"))
	}
	if c.Freeze && c.Learned == nil {
		errs = append(errs, errors.New("to freeze a model needs one to load"))
	}
	return errors.Join(errs...)
}
