package summary

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// FunctionStats are the statistics of the calls of a function in a step, on a rank
// or in a run. Parts that were not measured are empty. The zero value is the
// identity of Merge.
type FunctionStats struct {
	trace.FuncKey
	ID int // the same for all ranks

	Exclusive stats.Sums // times of all calls, in ticks
	Inclusive stats.Sums
	PerStep   stats.Sums // anomalies of each rank and step with calls, zeros included
	Anomalies Metrics
	LostTime  trace.Ticks // time of the anomalies beyond the typical time
}

// Merge adds the calls of o, whatever its name and id.
func (f *FunctionStats) Merge(o *FunctionStats) {
	f.Exclusive.Merge(&o.Exclusive)
	f.Inclusive.Merge(&o.Inclusive)
	f.PerStep.Merge(&o.PerStep)
	f.Anomalies.Merge(&o.Anomalies)
	f.LostTime += o.LostTime
}

// TAU's default limits beyond which it stops recording a function: the number of calls on a rank, and their mean time in ticks.
const (
	throttleCalls = 100_000
	throttleTime  = 10
)

// Throttled reports whether TAU stops recording a function with short calls after this many calls on a rank. Afterwards
// its callers seem to make fewer calls, and the time of the missing calls counts as theirs.
func (f *FunctionStats) Throttled(calls uint64) bool {
	return calls > throttleCalls && f.Inclusive.RunStats().Mean < throttleTime
}

// Metrics sum up anomalies of a function.
type Metrics struct {
	Count     stats.Sums // for each rank and step with anomalies
	FirstStep int32
	LastStep  int32
	First     trace.Ticks // entry of the first
	Last      trace.Ticks // exit of the last
	Score     stats.RunStats
	Severity  stats.Sums // exclusive times
}

// Empty reports whether m has no anomalies.
func (m *Metrics) Empty() bool { return m.Score.N == 0 }

// Add adds an anomaly. The caller adds it to Count, by step.
func (m *Metrics) Add(step int32, entry, exit trace.Ticks, score float64, severity trace.Ticks) {
	m.extend(step, step, entry, exit)
	m.Score.Add(score)
	m.Severity.Add(uint64(max(severity, 0)))
}

// Merge adds the anomalies of o.
func (m *Metrics) Merge(o *Metrics) {
	if o.Empty() {
		return
	}
	m.extend(o.FirstStep, o.LastStep, o.First, o.Last)
	m.Count.Merge(&o.Count)
	m.Score.Merge(o.Score)
	m.Severity.Merge(&o.Severity)
}

// extend makes the steps and times include the given ones.
func (m *Metrics) extend(firstStep, lastStep int32, first, last trace.Ticks) {
	if m.Empty() {
		m.FirstStep, m.LastStep, m.First, m.Last = firstStep, lastStep, first, last
		return
	}
	m.FirstStep, m.LastStep = min(m.FirstStep, firstStep), max(m.LastStep, lastStep)
	m.First, m.Last = min(m.First, first), max(m.Last, last)
}

// Counter holds the values of a counter.
type Counter struct {
	trace.FuncKey
	Values stats.Sums
}

// SortCounters orders counters by program and name.
func SortCounters(counters []*Counter) {
	slices.SortFunc(counters, func(a, b *Counter) int { return a.Compare(b.FuncKey) })
}
