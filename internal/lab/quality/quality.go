// Package quality measures how well the detectors find planted anomalies in simulated
// programs and in recorded traces. It runs the analysis in memory with its default
// settings, and compares its flags with the truth as `chimbuko eval` does. original.csv
// has the figures of the original Chimbuko, and floors.csv has our claims.
package quality

import (
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// Detectors are the measured detectors, in the order of the table.
var Detectors = outlier.Algorithms()

// settings returns those of `chimbuko analyze` with a detector. Each data set has one
// worker, because several are analyzed at once; the results do not depend on it.
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

// Result is the result of a detector on a data set. Unknown counts of the original are -1.
type Result struct {
	Data     string
	Detector outlier.Algorithm
	// Runs is the number of runs that the counts are sums of.
	Runs int
	// Calls is the number of all calls, Normal of those that no trouble affected and that
	// are outside the place and time of troubles.
	Calls, Normal int64
	// Planted counts the calls that must be found, Found those of them that are flagged at
	// the end. Excused flags are neither required nor wrong; Other flags are wrong.
	Planted, Found, Excused, Other int
	// Withdrawn counts flags on normal calls that the review withdrew.
	Withdrawn int
	// Delays has the seconds from the start of each trouble to its first flag; infinite if
	// it was never flagged.
	Delays []float64
	// FirstFlags counts flags on normal calls in the first step, which has FirstCalls calls.
	FirstFlags int
	FirstCalls int64
	// LateCounts has counts of the steps from LateStep on; nil if unknown.
	Late *LateCounts
	// Findings is nil for other detectors than the default one.
	Findings *FindingCounts
}

// LateCounts has counts of later steps, in which models have many samples.
type LateCounts struct{ Found, Missed, Other int }

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
	r.Delays = append(r.Delays, o.Delays...)
	r.FirstFlags += o.FirstFlags
	r.FirstCalls += o.FirstCalls
	if o.Findings != nil {
		if r.Findings == nil {
			r.Findings = new(FindingCounts)
		}
		r.Findings.Add(o.Findings)
	}
	switch {
	case o.Late == nil:
	case r.Late == nil:
		r.Late = new(*o.Late)
	default:
		r.Late.Found += o.Late.Found
		r.Late.Missed += o.Late.Missed
		r.Late.Other += o.Late.Other
	}
}

// Sum returns the sum of at least one run of a detector on a data set.
func Sum(runs []*Result) *Result {
	sum := &Result{Data: runs[0].Data, Detector: runs[0].Detector}
	for _, r := range runs {
		sum.Add(r)
	}
	return sum
}
