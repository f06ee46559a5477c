// Package quality measures how well the detectors find what was planted: in
// simulated programs, of which every call is known, and in recorded traces. It runs
// the analysis as it is shipped, in memory, and compares what it flags with the truth
// as `chimbuko eval` does. The figures of the original Chimbuko stand beside, and
// floors.csv holds what we claim. It neither tunes detectors nor measures their speed.
package quality

import (
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// Detectors are those that are measured, in the order of the table.
var Detectors = outlier.Algorithms()

// settings are those of `chimbuko analyze` with a detector. Several data sets are
// analyzed at once, so each is by one worker; that changes nothing but the time.
func settings(detector outlier.Algorithm, spool string) analyzer.Config {
	cfg := analyzer.Default()
	cfg.Outlier.Algorithm = detector
	cfg.Workers = 1
	cfg.SpoolDir = spool
	return cfg
}

// LateStep is the first I/O step of the second half of the data sets on which the
// original was measured.
const LateStep = 50

// Result is what came of a detector on a data set. Counts of the original that are
// not known are -1.
type Result struct {
	Data     string
	Detector outlier.Algorithm
	// Runs is how many runs the counts are sums of.
	Runs int
	// Normal are the calls that no trouble touched and that lie where and when
	// there was none; Calls are all.
	Calls, Normal int64
	// Of the Planted calls that were to be found, Found are flagged in the end.
	// Excused flags are neither demanded nor wrong, and Other ones are wrong.
	Planted, Found, Excused, Other int
	// Withdrawn are flags on normal calls that were raised during the run and
	// taken back at its end.
	Withdrawn int
	// After is for each trouble that struck how many seconds after its begin it was flagged;
	// infinite: never.
	After []float64
	// FirstFlags are flags that were raised in the first step, of FirstCalls, on
	// normal calls.
	FirstFlags int
	FirstCalls int64
	// Late are those of steps from LateStep on; nil: not known.
	Late *Late
}

// Late counts what belongs to later steps, when much is known already.
type Late struct{ Found, Missed, Other int }

// Add adds the counts of another run.
func (r *Result) Add(o *Result) {
	r.Runs += o.Runs
	r.Calls += o.Calls
	r.Normal += o.Normal
	r.Planted += o.Planted
	r.Found += o.Found
	r.Excused += o.Excused
	r.Other += o.Other
	r.Withdrawn += o.Withdrawn
	r.After = append(r.After, o.After...)
	r.FirstFlags += o.FirstFlags
	r.FirstCalls += o.FirstCalls
	switch {
	case o.Late == nil:
	case r.Late == nil:
		late := *o.Late
		r.Late = &late
	default:
		r.Late.Found += o.Late.Found
		r.Late.Missed += o.Late.Missed
		r.Late.Other += o.Late.Other
	}
}

// Sum adds up the runs of a detector on a data set, of which there is one at least.
func Sum(runs []*Result) *Result {
	sum := &Result{Data: runs[0].Data, Detector: runs[0].Detector}
	for _, r := range runs {
		sum.Add(r)
	}
	return sum
}
