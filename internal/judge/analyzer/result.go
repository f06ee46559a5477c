package analyzer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/workers"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/spool"
)

// Result is the result of an analysis.
type Result struct {
	*summary.Outcome
	Ranks  []*summary.RankOutcome // in order; nil for recorded traces
	Models *Models
}

// Collections returns the run-level data of all ranks.
func (res *Result) Collections() (*provenance.Collections, error) {
	models, err := res.Models.ADModels()
	if err != nil {
		return nil, err
	}
	return provenance.NewCollections(res.Outcome, models), nil
}

// finish reviews all captures and passes their records to the sink.
func (a *Analyzer) finish(ctx context.Context) (*Result, error) {
	a.models.settle()
	for _, s := range a.sources {
		for _, r := range s.ranks {
			s.tally.Add(tally.CorrelationUnmatched, int64(r.builder.Unmatched()))
			s.tally.Add(tally.OpenAtEnd, int64(r.builder.OpenCalls()))
			s.tally.Add(tally.PathPooled, r.pooled())
		}
	}
	a.done = ProgressReport{Totals: a.totals, ReadShare: 1}
	for _, s := range a.sources {
		for _, r := range s.ranks {
			a.done.Captures += r.spool.Count() + r.late.Count() + int64(len(r.pending)+len(r.unjudged))
		}
	}
	if err := a.promote(ctx); err != nil {
		return nil, err
	}
	profiles := a.sumPaths()
	res := a.newResult()
	counters := make(map[trace.FuncKey]*summary.Counter)
	err := workers.InOrder(ctx, a.cfg.Workers, a.sources, func(ctx context.Context, s *source) error {
		for _, r := range s.ranks {
			v := review{rank: r, cfg: &a.cfg, sink: a.sink, reviewed: a.addReviewed}
			v.RankReview = summary.NewRankReview(r.key, r.host)
			if err := v.run(ctx); err != nil {
				return err
			}
			s.outcomes = append(s.outcomes, v.Outcome())
			r.finish()
		}
		return nil
	}, func(s *source) { a.addTo(res, counters, s) })
	if err != nil {
		return nil, err
	}
	for _, c := range counters {
		res.Counters = append(res.Counters, c)
	}
	summary.SortCounters(res.Counters)
	a.models.addPaths(res.Outcome, profiles)
	return res, nil
}

// finish frees the memory of a rank after its review.
func (r *rank) finish() {
	r.builder, r.all, r.funcs, r.others, r.nodes, r.first, r.spool, r.late = nil, nil, nil, nil, nil, nil, nil, nil
	r.touched, r.merged, r.pending, r.flagged, r.typicals, r.paths, r.promoted = nil, nil, nil, nil, nil, nil, nil
	r.rareInside = nil
}

// review judges the captures of a rank again with the final models.
type review struct {
	summary.RankReview
	rank     *rank
	cfg      *Config
	sink     RecordSink
	reviewed func(int64) // reports the number of reviewed executions

	step      int32
	visited   int64 // number of captures in the step
	anomalies []*provenance.Record
	typical   []*provenance.Record
}

func (v *review) run(ctx context.Context) error {
	v.step = -1
	v.rank.online = false // create no more provisional records
	if err := v.rank.settle(); err != nil {
		return err
	}
	for _, s := range []*spool.Spool{v.rank.spool, v.rank.late} {
		for _, unneeded := range s.Unneeded {
			if unneeded {
				v.Review.Dropped++
				v.visited++
			}
		}
	}
	late, err := v.rank.late.All()
	if err != nil {
		return err
	}
	slices.SortStableFunc(late, func(a, b *provenance.Capture) int { return cmp.Compare(a.IOStep, b.IOStep) })
	err = v.rank.spool.Each(func(c *provenance.Capture) error {
		for ; len(late) > 0 && late[0].IOStep <= c.IOStep; late = late[1:] {
			if err := v.visit(ctx, late[0]); err != nil {
				return err
			}
		}
		return v.visit(ctx, c)
	})
	if err != nil {
		return err
	}
	for _, c := range late {
		if err := v.visit(ctx, c); err != nil {
			return err
		}
	}
	return v.flush(ctx)
}

// visit judges the next capture. Captures come in the order of steps.
func (v *review) visit(ctx context.Context, c *provenance.Capture) error {
	if c.IOStep != v.step {
		if err := v.flush(ctx); err != nil {
			return err
		}
		v.step = c.IOStep
	}
	v.visited++
	v.judge(c)
	return nil
}

// judge judges a capture and creates its record.
func (v *review) judge(c *provenance.Capture) {
	f := v.rank.all[c.Context]
	j, rare := v.rank.judgeOf(f, c)
	switch {
	case j == nil:
		v.Review.NotJudged++
		return
	case c.Kind == provenance.First && rare == nil: // set-up
		v.Review.Dropped++
		return
	}
	time := v.rank.timeOf(c)
	score, verdict := c.Score, outlier.Outlier
	if v.cfg.Review || c.Kind == provenance.Unjudged || c.Kind == provenance.First {
		score, verdict = j.JudgeCall(time, v.rank.capturedWork(f, c))
	}
	explains := verdict < outlier.Recurring && c.Kind != provenance.Typical && v.rank.promoted[keyOf(c)]
	if explains {
		verdict = outlier.Outlier
	}
	switch {
	case verdict == outlier.NotJudged:
		v.Review.NotJudged++
		return
	case c.Kind == provenance.Typical:
		if verdict >= outlier.Recurring && v.cfg.Review {
			return
		}
		c.Score = score
		v.Review.Typical++
		v.typical = append(v.typical, v.rank.typical(f, c))
		return
	case verdict < outlier.Recurring && c.Kind != provenance.Anomaly:
		v.Review.Dropped++
		return
	case !v.rank.keeps(j, verdict, keyOf(c)):
		v.Review.Dropped++
		if c.Sent {
			v.anomalies = append(v.anomalies, provenance.NewDropped(c, v.rank))
		}
		return
	}
	status := provenance.Confirmed
	switch {
	case verdict < outlier.Recurring:
		status = provenance.Withdrawn
		v.Review.Withdrawn++
	case c.Kind != provenance.Anomaly:
		status = provenance.Promoted
		v.Review.Promoted++
	default:
		v.Review.Confirmed++
	}
	c.Score = score
	c.Mark(status != provenance.Withdrawn)
	r := v.rank.anomaly(f, c, status)
	if verdict == outlier.Recurring {
		r.Kind = provenance.Recurring
	}
	if explains {
		r.ExplainsWaits()
	}
	v.anomalies = append(v.anomalies, r)
	if status != provenance.Withdrawn {
		v.Add(f.allPaths.models.function.FuncKey, c.IOStep, c.Call().Entry, c.Call().Exit, c.Score, c.Exclusive, r.LostTime)
	}
}

// flush passes the records of a step to the sink.
func (v *review) flush(ctx context.Context) error {
	v.EndSteps()
	defer func() {
		v.reviewed(v.visited)
		v.visited = 0
	}()
	if len(v.anomalies)+len(v.typical) == 0 {
		return nil
	}
	byEntry := func(a, b *provenance.Record) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.TID, b.TID))
	}
	slices.SortStableFunc(v.anomalies, byEntry)
	slices.SortStableFunc(v.typical, byEntry)
	key := trace.StepKey{RankKey: v.rank.key, Step: int(v.step)}
	err := v.sink.Records(ctx, key, v.anomalies, v.typical)
	v.anomalies, v.typical = nil, nil
	return err
}

// newResult returns a result without the results of ranks.
func (a *Analyzer) newResult() *Result {
	functions := make([]*summary.FunctionStats, 0, len(a.models.functions))
	for _, f := range a.models.functions {
		functions = append(functions, &f.FunctionStats)
	}
	res := &Result{Models: a.models, Outcome: summary.NewOutcome(functions, func(i int) float64 {
		return a.models.functions[i].Learned().Hist.Quantile(0.5)
	})}
	res.Unit, res.Totals, res.Changes, res.Modes = a.cfg.Unit, a.totals, a.models.Changes(), a.models.Modes()
	if a.online == nil { // otherwise each step has contributed its paths
		res.Load, res.Breakdown = a.load, a.breakdown()
	} else if of := a.collectives.Final(); of != nil {
		res.Breakdown = &breakdown.Run{Collectives: of.Programs}
	}
	res.Breakdown.Count(&res.Tally)
	return res
}

// addTo adds a source and its ranks, which have been reviewed, to the result.
func (a *Analyzer) addTo(res *Result, counters map[trace.FuncKey]*summary.Counter, s *source) {
	counts := a.counts(s)
	res.Tally.Merge(&counts)
	if s.err != nil {
		res.Broken = append(res.Broken, fmt.Errorf("%s: %w", s.input.Path, s.err))
	}
	for i, r := range s.ranks {
		res.Add(s.outcomes[i])
		for id, of := range r.counter { // two counters may have the same name
			key := r.counterKey(id)
			if counters[key] == nil {
				counters[key] = &summary.Counter{FuncKey: key}
			}
			counters[key].Values.Merge(&of.Values)
		}
	}
	if a.online != nil {
		res.Ranks = append(res.Ranks, s.outcomes...)
	}
	s.outcomes = nil
}

// breakdown returns the breakdown of the ranks with GPUs and the collective operations of all ranks, or nil if there are none.
func (a *Analyzer) breakdown() *breakdown.Run {
	var run breakdown.Run
	logs := make(map[trace.Program][]breakdown.RankLog)
	for _, s := range a.sources {
		if in := &s.input; in.Collectives.Log != nil && !in.Collectives.Empty() {
			logs[in.Program] = append(logs[in.Program], in.Collectives)
		}
		for _, r := range s.ranks {
			if r.devices == nil {
				continue
			}
			run.Ranks = append(run.Ranks, breakdown.RankResult{RankKey: r.key, Result: *r.devices.Finish()})
			r.devices = nil
		}
	}
	if len(run.Ranks) == 0 && len(logs) == 0 {
		return nil
	}
	slices.SortFunc(run.Ranks, func(a, b breakdown.RankResult) int { return a.Compare(b.RankKey) })
	for program, of := range logs {
		run.Collectives = append(run.Collectives, breakdown.ProgramComparison{Program: program, Comparison: *breakdown.Compare(of)})
	}
	slices.SortFunc(run.Collectives, func(a, b breakdown.ProgramComparison) int { return cmp.Compare(a.Program, b.Program) })
	return &run
}
