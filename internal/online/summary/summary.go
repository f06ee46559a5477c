// Package summary holds the statistics of a run over all ranks: functions, counters, anomalies and
// call paths. Their size does not grow with the run. They can be merged: whole numbers exactly and
// in any order, scores in the order of ranks and steps. The package is pure.
package summary

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// Totals count everything that was read.
type Totals struct {
	Pass    int   `json:"-"`
	Steps   int   `json:"steps"` // of all ranks together
	Events  int64 `json:"events"`
	Calls   int64 `json:"calls"`
	Flagged int64 `json:"flagged"`
	Ranks   int   `json:"ranks"`
	// Begin and End are the times of the first and the last event.
	Begin trace.Ticks `json:"begin_us"`
	End   trace.Ticks `json:"end_us"`
}

// Merge adds the totals of other ranks.
func (t *Totals) Merge(o Totals) {
	t.Steps += o.Steps
	t.Events += o.Events
	t.Calls += o.Calls
	t.Flagged += o.Flagged
	t.Ranks += o.Ranks
	t.Started(o.Begin)
	t.End = max(t.End, o.End)
}

// Started moves Begin to an earlier time; it ignores 0, which means unknown.
func (t *Totals) Started(at trace.Ticks) {
	if t.Begin == 0 || at != 0 && at < t.Begin {
		t.Begin = at
	}
}

// Review is the result of judging the kept executions with the final models.
type Review struct {
	Anomalies int64 `json:"anomalies"` // confirmed and promoted
	Confirmed int64 `json:"confirmed"`
	Withdrawn int64 `json:"withdrawn"`
	Promoted  int64 `json:"promoted"`
	Dropped   int64 `json:"candidates_dropped"`
	NotJudged int64 `json:"not_judged"`
	Typical   int64 `json:"normal_executions"`
}

// Merge adds the counts of o.
func (r *Review) Merge(o Review) {
	for i, n := range o.fields() {
		*r.fields()[i] += *n
	}
}

// fields returns the counts in the order of their encoding.
func (r *Review) fields() []*int64 {
	return []*int64{&r.Anomalies, &r.Confirmed, &r.Withdrawn, &r.Promoted, &r.Dropped, &r.NotJudged, &r.Typical}
}

// RankOutcome is the result of a rank.
type RankOutcome struct {
	trace.RankKey
	Host      string
	Review    Review
	Functions []FunctionStats // with anomalies, by name
}

// Handover is the result of an analyzer after its review.
type Handover struct {
	Totals Totals
	Tally  tally.Tally
	Broken []string // why traces ended early
	Ranks  []*RankOutcome
}

// Outcome is the result of a run.
type Outcome struct {
	Unit      trace.Unit // of all times
	Totals    Totals
	Review    Review
	Functions []*FunctionResult // in order of their numbers
	Counters  []*Counter        // by program and name
	Paths     []Path            // by program and names, each after the one that it continues
	Changes   []Change          // by program and name
	Modes     []Mode            // by program, name and path
	Load      *workload.Load    // by the numbers of functions; nil if the analyzers contributed it to another outcome
	Breakdown *breakdown.Run    // nil without GPUs and collective operations; a live run has only the operations
	Tally     tally.Tally
	Broken    []error // traces that ended early

	byName map[trace.FuncKey]*FunctionResult
}

// FunctionResult is the result of a function.
type FunctionResult struct {
	FunctionStats
	Typical float64 // median of the judged time
	Ranks   []trace.Rank
	Hosts   []string
}

// Change is a change of the time that a function takes. Its calls are not anomalies.
type Change struct {
	Program  trace.Program `json:"program"`
	Function string        `json:"function"`
	Kind     string        `json:"kind"`            // shift: at once; drift: gradually; temporary: for a while
	Since    trace.Ticks   `json:"since"`           // of a drift rounded to a span that grows with the run
	Until    trace.Ticks   `json:"until,omitempty"` // 0 if it lasts
	Before   float64       `json:"before_us"`
	After    float64       `json:"after_us"`
	Calls    uint64        `json:"calls"`   // since then
	Lost     float64       `json:"lost_us"` // by these calls
	// MadeBefore and MadeAfter are the average numbers of calls that a call of the function makes; 0
	// for none.
	MadeBefore float64 `json:"made_before,omitempty"`
	MadeAfter  float64 `json:"made_after,omitempty"`
	// Unrecorded is its most frequent callee among those that the trace no longer records since then; see
	// FunctionStats.Throttled.
	Unrecorded string `json:"unrecorded,omitempty"`
}

// ByWork reports whether the function does other work since the change: the number of calls that it makes grew by at least the same
// factor as its time, or by at least otherWork.
func (c *Change) ByWork() bool {
	return c.After > c.Before && c.MadeBefore > 0 && (c.MadeAfter*c.Before >= c.MadeBefore*c.After || c.MadeAfter >= otherWork*c.MadeBefore)
}

// otherWork is the factor by which the number of calls that a function makes grows if it does other work. Its times are not
// compared then, because they need not grow in proportion.
const otherWork = 2

// Mode is a slow mode of a function: a share of its calls takes much longer than the others. Only
// examples of these calls are anomalies.
type Mode struct {
	Program  trace.Program `json:"program"`
	Function string        `json:"function"`
	Path     callpath.Hash `json:"path,string,omitempty"` // 0 for all paths that are not judged separately
	Calls    uint64        `json:"calls,omitempty"`       // in the mode; 0 if the model has calls of other runs
	Lost     float64       `json:"lost_us,omitempty"`     // by these calls
	Kept     float64       `json:"kept"`                  // share of them that are anomalies
	Usual    float64       `json:"usual_us"`              // median of all calls
	Slow     float64       `json:"slow_us"`               // median of calls in the mode
	// Parts count all calls and those in the mode, in ModeParts parts of the run, or fewer if it is short.
	Parts []outlier.Part `json:"parts,omitempty"`
}

// ModeParts is the number of parts of a run in which the calls of a slow mode are compared with all calls.
const ModeParts = 4

// NewOutcome returns the outcome of a run without ranks. typical returns the median
// of the judged time of the i-th function.
func NewOutcome(functions []*FunctionStats, typical func(i int) float64) *Outcome {
	o := &Outcome{byName: make(map[trace.FuncKey]*FunctionResult)}
	for i, f := range functions {
		r := &FunctionResult{FunctionStats: *f, Typical: typical(i)}
		o.byName[f.FuncKey] = r
		o.Functions = append(o.Functions, r)
	}
	return o
}

// Add adds the result of a rank. Scores are the same to the last bit only if ranks
// are added in the same order.
func (o *Outcome) Add(r *RankOutcome) {
	o.Review.Merge(r.Review)
	for i := range r.Functions {
		f := &r.Functions[i]
		res := o.byName[trace.FuncKey{Program: r.Program, Name: f.Name}]
		if res == nil {
			continue // the statistics of the run were lost
		}
		res.Merge(f)
		if at, found := slices.BinarySearch(res.Ranks, r.Rank); !found { // a rank may have several parts
			res.Ranks = slices.Insert(res.Ranks, at, r.Rank)
		}
		if !slices.Contains(res.Hosts, r.Host) {
			res.Hosts = append(res.Hosts, r.Host)
		}
	}
}
