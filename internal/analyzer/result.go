package analyzer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/stats"
	"github.com/chimbuko/chimbuko/internal/tally"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// Result is what came of an analysis.
type Result struct {
	Totals    Totals
	Review    ReviewCounts
	Functions []*FunctionResult // in order of their numbers
	Counters  []*Counter        // by program and name
	Models    *Models
	Tally     tally.Tally
	Broken    []error // traces that ended early
}

// ReviewCounts says what became of what was kept.
type ReviewCounts struct {
	Anomalies int64 `json:"anomalies"` // confirmed and promoted
	Confirmed int64 `json:"confirmed"`
	Withdrawn int64 `json:"withdrawn"`
	Promoted  int64 `json:"promoted"`
	Dropped   int64 `json:"candidates_dropped"`
	NotJudged int64 `json:"not_judged"`
	Typical   int64 `json:"normal_executions"`
}

// FunctionResult is what came of a function.
type FunctionResult struct {
	*Function
	Metrics *Metrics // nil without anomalies

	// LostTime is how much longer its anomalies took than is typical.
	LostTime trace.Micros
	Typical  float64 // median of the judged time
	Ranks    []trace.Rank
	Hosts    []string
}

// Metrics sums up the anomalies of a function.
type Metrics struct {
	Count     stats.RunStats // for each rank and step with anomalies
	FirstStep int32
	LastStep  int32
	First     trace.Micros // entry of the first
	Last      trace.Micros // exit of the last
	Score     stats.RunStats
	Severity  stats.RunStats
}

// Merge adds the anomalies of o.
func (m *Metrics) Merge(o *Metrics) {
	m.Count.Merge(o.Count)
	m.Score.Merge(o.Score)
	m.Severity.Merge(o.Severity)
	m.FirstStep, m.LastStep = min(m.FirstStep, o.FirstStep), max(m.LastStep, o.LastStep)
	m.First, m.Last = min(m.First, o.First), max(m.Last, o.Last)
}

// finish reviews all that was kept and hands it to the sink.
func (a *Analyzer) finish(ctx context.Context) (*Result, error) {
	a.models.settle()
	for _, s := range a.sources {
		for _, r := range s.ranks {
			s.tally.Add(tally.CorrelationUnmatched, int64(r.builder.Waiting()))
			s.tally.Add(tally.OpenAtEnd, int64(r.builder.OpenCalls()))
		}
	}
	params := make(map[*scoped]json.RawMessage)
	for _, s := range a.sources {
		for _, r := range s.ranks {
			for _, f := range r.all() {
				if err := addParams(params, f.model); err != nil {
					return nil, err
				}
			}
		}
	}
	reviews := make(map[*rank]*review)
	for _, s := range a.sources {
		for _, r := range s.ranks {
			reviews[r] = &review{rank: r, cfg: &a.cfg, sink: a.sink, params: params, metrics: make(map[*Function]*Metrics), lost: make(map[*Function]trace.Micros)}
		}
	}
	err := a.parallel(ctx, a.sources, func(ctx context.Context, s *source) error {
		for _, r := range s.ranks {
			if err := reviews[r].run(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.result(reviews), nil
}

func addParams(params map[*scoped]json.RawMessage, s *scoped) error {
	if s == nil || s.judge == nil || params[s] != nil {
		return nil
	}
	b, err := json.Marshal(s.judge)
	if err != nil {
		return fmt.Errorf("model of %q: %w", s.function.Name, err)
	}
	params[s] = b
	return nil
}

// all returns the functions of the rank that are known by name, in order of
// their numbers.
func (r *rank) all() (known []*localFunc) {
	for _, f := range r.funcs {
		if f != nil && f.function != nil {
			known = append(known, f)
		}
	}
	for _, f := range r.others {
		if f.function != nil {
			known = append(known, f)
		}
	}
	slices.SortFunc(known, func(x, y *localFunc) int { return cmp.Compare(x.id, y.id) })
	return known
}

// review judges what a rank kept once more with all that is known now.
type review struct {
	rank    *rank
	cfg     *Config
	sink    RecordSink
	params  map[*scoped]json.RawMessage
	counts  ReviewCounts
	metrics map[*Function]*Metrics
	lost    map[*Function]trace.Micros

	step      int32
	anomalies []*provenance.Record
	typical   []*provenance.Record
	inStep    map[*Function]int
}

func (v *review) run(ctx context.Context) error {
	v.step, v.inStep = -1, make(map[*Function]int)
	if err := v.rank.settle(); err != nil {
		return err
	}
	err := v.rank.spool.each(func(c *provenance.Capture) error {
		if c.IOStep != v.step {
			if err := v.flush(ctx); err != nil {
				return err
			}
			v.step = c.IOStep
		}
		v.judge(c)
		return nil
	})
	if err != nil {
		return err
	}
	return v.flush(ctx)
}

// judge decides what becomes of a capture.
func (v *review) judge(c *provenance.Capture) {
	f := v.rank.slot(c.Call().Func)
	if f.model == nil || f.model.judge == nil {
		v.counts.NotJudged++
		return
	}
	j := f.model.judge
	time := v.rank.timeOf(c)
	score, verdict := c.Score, outlier.Outlier
	if v.cfg.Review || c.Kind == provenance.Held {
		score, verdict = j.Judge(time)
	}
	switch {
	case verdict == outlier.NotJudged:
		v.counts.NotJudged++
		return
	case c.Kind == provenance.Typical:
		if verdict == outlier.Outlier && v.cfg.Review {
			return
		}
		c.Score = score
		v.counts.Typical++
		v.typical = append(v.typical, provenance.NewRecord(c, v.rank, v.params[f.model]))
		return
	case verdict != outlier.Outlier && c.Kind != provenance.Anomaly:
		v.counts.Dropped++
		return
	}
	status := provenance.Confirmed
	switch {
	case verdict != outlier.Outlier:
		status = provenance.Withdrawn
		v.counts.Withdrawn++
	case c.Kind != provenance.Anomaly:
		status = provenance.Promoted
		v.counts.Promoted++
	default:
		v.counts.Confirmed++
	}
	c.Score = score
	c.Mark(status != provenance.Withdrawn)
	r := provenance.NewRecord(c, v.rank, v.params[f.model])
	r.Status = status
	r.LostTime = trace.Micros(max(0, time-int64(f.function.model.model.Hist.Quantile(0.5))))
	v.anomalies = append(v.anomalies, r)
	if status != provenance.Withdrawn {
		v.counts.Anomalies++
		v.lost[f.function] += r.LostTime
		v.measure(f.function, c)
	}
}

// measure adds an anomaly to the metrics of its function.
func (v *review) measure(f *Function, c *provenance.Capture) {
	m := v.metrics[f]
	if m == nil {
		m = &Metrics{FirstStep: c.IOStep, First: c.Call().Entry}
		v.metrics[f] = m
	}
	m.FirstStep, m.LastStep = min(m.FirstStep, c.IOStep), max(m.LastStep, c.IOStep)
	m.First, m.Last = min(m.First, c.Call().Entry), max(m.Last, c.Call().Exit)
	m.Score.Add(c.Score)
	m.Severity.Add(float64(c.Exclusive))
	v.inStep[f]++
}

// flush hands the records of a step to the sink.
func (v *review) flush(ctx context.Context) error {
	for f, n := range v.inStep {
		v.metrics[f].Count.Add(float64(n))
	}
	clear(v.inStep)
	if len(v.anomalies)+len(v.typical) == 0 {
		return nil
	}
	byEntry := func(a, b *provenance.Record) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.TID, b.TID))
	}
	slices.SortStableFunc(v.anomalies, byEntry)
	slices.SortStableFunc(v.typical, byEntry)
	key := StepKey{v.rank.program, v.rank.id, int(v.step)}
	err := v.sink.Records(ctx, key, v.anomalies, v.typical)
	v.anomalies, v.typical = nil, nil
	return err
}

// result sums up, in the order of ranks.
func (a *Analyzer) result(reviews map[*rank]*review) *Result {
	res := &Result{Totals: a.totals, Models: a.models}
	byFunc := make(map[*Function]*FunctionResult)
	for _, f := range a.models.functions {
		fr := &FunctionResult{Function: f, Typical: f.model.model.Hist.Quantile(0.5)}
		byFunc[f] = fr
		res.Functions = append(res.Functions, fr)
	}
	counters := make(map[functionKey]*Counter)
	for _, s := range a.sources {
		res.Tally.Merge(&s.tally)
		if s.err != nil {
			res.Broken = append(res.Broken, fmt.Errorf("%s: %w", s.input.Path, s.err))
		}
		for _, r := range s.ranks {
			v := reviews[r]
			res.add(v, byFunc)
			for _, id := range slices.Sorted(maps.Keys(r.counter)) { // two may have one name
				key := functionKey{r.program, r.Counter(id)}
				if counters[key] == nil {
					counters[key] = &Counter{Program: r.program, Name: key.name}
				}
				counters[key].Stats.Merge(*r.counter[id])
			}
		}
	}
	for _, c := range counters {
		res.Counters = append(res.Counters, c)
	}
	sortCounters(res.Counters)
	return res
}

func (res *Result) add(v *review, byFunc map[*Function]*FunctionResult) {
	c := &res.Review
	c.Anomalies += v.counts.Anomalies
	c.Confirmed += v.counts.Confirmed
	c.Withdrawn += v.counts.Withdrawn
	c.Promoted += v.counts.Promoted
	c.Dropped += v.counts.Dropped
	c.NotJudged += v.counts.NotJudged
	c.Typical += v.counts.Typical
	for f, m := range v.metrics {
		fr := byFunc[f]
		if fr.Metrics == nil {
			fr.Metrics = &Metrics{FirstStep: m.FirstStep, First: m.First}
		}
		fr.Metrics.Merge(m)
		fr.LostTime += v.lost[f]
		fr.Ranks = append(fr.Ranks, v.rank.id)
		if !slices.Contains(fr.Hosts, v.rank.host) {
			fr.Hosts = append(fr.Hosts, v.rank.host)
		}
	}
}
