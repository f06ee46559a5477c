package summary

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// RankReview collects the anomalies of a rank by function.
type RankReview struct {
	RankOutcome
	functions map[trace.FuncKey]*FunctionStats
	inStep    map[functionStep]uint64 // not yet counted in functions
}

type functionStep struct {
	function trace.FuncKey
	step     int32
}

// NewRankReview returns a review without anomalies.
func NewRankReview(key trace.RankKey, host string) RankReview {
	return RankReview{
		RankOutcome: RankOutcome{RankKey: key, Host: host},
		functions:   make(map[trace.FuncKey]*FunctionStats), inStep: make(map[functionStep]uint64),
	}
}

// Add adds an anomaly to the statistics of its function.
func (r *RankReview) Add(f trace.FuncKey, step int32, entry, exit trace.Ticks, score float64, exclusive, lost trace.Ticks) {
	r.Review.Anomalies++
	stats := r.functions[f]
	if stats == nil {
		stats = &FunctionStats{FuncKey: f}
		r.functions[f] = stats
	}
	stats.Anomalies.Add(step, entry, exit, score, exclusive)
	stats.LostTime += lost
	r.inStep[functionStep{f, step}]++
}

// EndSteps counts the anomalies of steps that are complete.
func (r *RankReview) EndSteps() {
	for key, n := range r.inStep {
		r.functions[key.function].Anomalies.Count.Add(n)
	}
	clear(r.inStep)
}

// Outcome returns the result of the rank.
func (r *RankReview) Outcome() *RankOutcome {
	r.EndSteps()
	r.Functions = nil
	for _, f := range r.functions {
		r.Functions = append(r.Functions, *f)
	}
	slices.SortFunc(r.Functions, func(a, b FunctionStats) int { return a.Compare(b.FuncKey) })
	return &r.RankOutcome
}
