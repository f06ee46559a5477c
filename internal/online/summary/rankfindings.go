package summary

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// RankFindings collects the anomalies of a rank by function.
type RankFindings struct {
	RankOutcome
	functions map[trace.FuncKey]*FunctionStats
	inStep    map[functionStep]uint64 // not yet counted in functions
}

type functionStep struct {
	trace.FuncKey
	step int32
}

// NewRankFindings returns findings without anomalies.
func NewRankFindings(key trace.RankKey, host string) RankFindings {
	return RankFindings{
		RankOutcome: RankOutcome{RankKey: key, Host: host},
		functions:   make(map[trace.FuncKey]*FunctionStats), inStep: make(map[functionStep]uint64),
	}
}

// Add adds an anomaly to the statistics of its function.
func (o *RankFindings) Add(f trace.FuncKey, step int32, entry, exit trace.Ticks, score float64, exclusive, lost trace.Ticks) {
	o.Review.Anomalies++
	stats := o.functions[f]
	if stats == nil {
		stats = &FunctionStats{FuncKey: f}
		o.functions[f] = stats
	}
	stats.Anomalies.Add(step, entry, exit, score, exclusive)
	stats.LostTime += lost
	o.inStep[functionStep{f, step}]++
}

// EndSteps counts the anomalies of steps that are complete.
func (o *RankFindings) EndSteps() {
	for key, n := range o.inStep {
		o.functions[key.FuncKey].Anomalies.Count.Add(n)
	}
	clear(o.inStep)
}

// Result returns the result of the rank.
func (o *RankFindings) Result() *RankOutcome {
	o.EndSteps()
	o.Functions = nil
	for _, f := range o.functions {
		o.Functions = append(o.Functions, *f)
	}
	slices.SortFunc(o.Functions, func(a, b FunctionStats) int { return cmp.Compare(a.Name, b.Name) })
	return &o.RankOutcome
}
