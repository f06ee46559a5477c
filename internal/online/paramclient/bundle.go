package paramclient

import (
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// bundle merges the contributions of some steps of some ranks for a shard. Its size
// depends on the functions, not on the steps.
type bundle struct {
	covers map[trace.RankKey]*protocol.Steps
	models map[callpath.Context]*outlier.Model

	// The rest is only for the first shard.
	functions map[trace.FuncKey]*summary.FunctionStats
	ranks     map[trace.RankKey]*stats.Sums // anomalies of each step
	counters  map[trace.FuncKey]*stats.Sums
	reports   []summary.StepReport // functions by name
	paths     map[trace.Program]*callpath.Profile
	load      *workload.Load // with the analyzer's numbers of functions; nil without

	spare spare
}

func newBundle() *bundle {
	return &bundle{
		covers: make(map[trace.RankKey]*protocol.Steps), models: make(map[callpath.Context]*outlier.Model),
		functions: make(map[trace.FuncKey]*summary.FunctionStats), ranks: make(map[trace.RankKey]*stats.Sums),
		counters: make(map[trace.FuncKey]*stats.Sums), paths: make(map[trace.Program]*callpath.Profile),
	}
}

// spare is memory of encoded exchanges for reuse by the next ones. All values are empty.
type spare struct {
	models    []*outlier.Model
	functions []*summary.FunctionStats
	sums      []*stats.Sums
	delta     summary.Delta
	encoded   []byte
}

// maxSpare is the maximum number of spare models per model of an exchange.
const maxSpare = 4

// reuse takes the models of an obsolete exchange.
func (s *spare) reuse(models map[callpath.Context]*outlier.Model) {
	for _, m := range models {
		if len(s.models) >= maxSpare*len(models) {
			return
		}
		m.Reset()
		s.models = append(s.models, m)
	}
}

// takeModels empties the bundle, keeps its memory, and returns its models.
func (b *bundle) takeModels() map[callpath.Context]*outlier.Model {
	models := b.models
	b.models = make(map[callpath.Context]*outlier.Model, len(models))
	clear(b.covers)
	for _, f := range b.functions {
		*f = summary.FunctionStats{}
		b.spare.functions = append(b.spare.functions, f)
	}
	clear(b.functions)
	for _, sums := range b.counters {
		*sums = stats.Sums{}
		b.spare.sums = append(b.spare.sums, sums)
	}
	clear(b.counters)
	for _, sums := range b.ranks {
		*sums = stats.Sums{}
		b.spare.sums = append(b.spare.sums, sums)
	}
	clear(b.ranks)
	clear(b.reports)
	b.reports = b.reports[:0]
	clear(b.paths)
	b.load = nil
	return models
}

// at returns the value of a key. It adds a missing one.
func at[K comparable, V any](m map[K]*V, key K) *V { return reuseAt(m, key, nil) }

// reuseAt returns the value of a key. It takes a missing one from the spare values, if any.
func reuseAt[K comparable, V any](m map[K]*V, key K, spare *[]*V) *V {
	v := m[key]
	if v != nil {
		return v
	}
	if spare != nil && len(*spare) > 0 {
		last := len(*spare) - 1
		v = (*spare)[last]
		(*spare)[last] = nil
		*spare = (*spare)[:last]
	} else {
		v = new(V)
	}
	m[key] = v
	return v
}

func (b *bundle) pathsOf(program trace.Program) *callpath.Profile {
	p := b.paths[program]
	if p == nil {
		p = callpath.NewProfile(callpath.MaxPaths)
		b.paths[program] = p
	}
	return p
}

// addLoad adds the load of ranks. The caller sets the steps that it covers.
func (b *bundle) addLoad(o *workload.Load) {
	if b.load == nil {
		b.load = workload.New()
	}
	b.load.Merge(o, nil)
}

// models yields the models of a contribution, of functions and of their call paths.
func models(c *deltas.Contribution) iter.Seq2[callpath.Context, *outlier.Model] {
	return func(yield func(callpath.Context, *outlier.Model) bool) {
		for i := range c.Functions {
			if f := &c.Functions[i]; !yield(callpath.Context{FuncKey: f.FuncKey}, f.Model) {
				return
			}
		}
		for i := range c.Contexts {
			if p := &c.Contexts[i]; !yield(p.Context, p.Model) {
				return
			}
		}
	}
}

// maxReports limits the reports of steps with anomalies. More gather only while a
// server is unavailable for long; then only their sums are sent.
const maxReports = 1 << 14

// cover returns the steps of a rank that the bundle covers. A new rank covers none, starting at
// from.
func (b *bundle) cover(key trace.RankKey, from uint32) *protocol.Steps {
	steps := b.covers[key]
	if steps == nil {
		steps = &protocol.Steps{Program: uint32(key.Program), Rank: uint32(key.Rank), From: from, To: from}
		b.covers[key] = steps
	}
	return steps
}

// add adds the contribution of a step, without its load. from is the first step of the rank
// that the shard does not have.
func (b *bundle) add(c *deltas.Contribution, from uint32, shard, shards int) {
	step := deltas.RankStep{StepKey: c.StepKey, Host: c.Host, First: c.First, Last: c.Last, Stream: c.Stream}
	for i := range c.Functions {
		if f := &c.Functions[i]; !f.Anomalies.Empty() {
			step.Anomalies = append(step.Anomalies, summary.FunctionStats{FuncKey: f.FuncKey, Anomalies: f.Anomalies})
		}
	}
	b.addStep(&step, from, shard)
	if c.Ended {
		b.covers[c.RankKey].Ended = true
	}
	b.addDeltas(c, shard, shards)
}

// addStep adds a step of a rank without its deltas.
func (b *bundle) addStep(step *deltas.RankStep, from uint32, shard int) {
	steps := b.cover(step.RankKey, from)
	steps.To, steps.Host = uint32(step.Step)+1, step.Host
	if shard != 0 {
		return
	}
	if p := step.Stream; p != nil {
		h := summary.Handover{Totals: p.Totals, Tally: p.Tally}
		steps.Stream = &protocol.StreamProgress{Handover: h.AppendBinary(nil), Bytes: p.Bytes}
	}
	b.report(step)
}

// addDeltas adds the deltas of a contribution without its load.
func (b *bundle) addDeltas(c *deltas.Contribution, shard, shards int) {
	for context, model := range models(c) {
		if model.Count() > 0 && paramwire.ShardOf(context.FuncKey, shards) == shard {
			reuseAt(b.models, context, &b.spare.models).Merge(model)
		}
	}
	if shard != 0 {
		return
	}
	for i := range c.Functions {
		f := &c.Functions[i]
		p := reuseAt(b.functions, f.FuncKey, &b.spare.functions)
		p.Exclusive.Merge(&f.Exclusive)
		p.Inclusive.Merge(&f.Inclusive)
		if len(c.Joined) > 0 {
			p.PerStep.Merge(&f.PerStep)
		} else {
			p.PerStep.Add(uint64(f.Anomalies.Score.N))
		}
	}
	for _, counter := range c.Counters {
		reuseAt(b.counters, counter.FuncKey, &b.spare.sums).Merge(&counter.Values)
	}
	b.pathsOf(c.Program).Merge(c.PathDepth, c.Paths)
}

// report adds the anomalies of a step.
func (b *bundle) report(step *deltas.RankStep) {
	report := summary.StepReport{RankKey: step.RankKey, Step: int32(step.Step), First: step.First, Last: step.Last}
	for i := range step.Anomalies {
		own := step.Anomalies[i]
		own.Anomalies.Count.Add(uint64(own.Anomalies.Score.N))
		report.Scores.Merge(own.Anomalies.Score)
		report.Functions = append(report.Functions, own)
	}
	reuseAt(b.ranks, step.RankKey, &b.spare.sums).Add(uint64(report.Scores.N))
	if len(report.Functions) > 0 && len(b.reports) < maxReports {
		b.reports = append(b.reports, report)
	}
}

// end marks the end of a rank.
func (b *bundle) end(key trace.RankKey, from uint32, host string) {
	steps := b.cover(key, from)
	steps.Ended, steps.Host = true, host
}

// merge adds the part of o that belongs to a shard. o must cover other ranks.
func (b *bundle) merge(o *bundle, shard, shards int) {
	for key, steps := range o.covers {
		b.covers[key] = proto.CloneOf(steps)
		if shard != 0 {
			b.covers[key].Loaded, b.covers[key].Stream = 0, nil
		}
	}
	for context, m := range o.models {
		if paramwire.ShardOf(context.FuncKey, shards) == shard {
			at(b.models, context).Merge(m)
		}
	}
	if shard != 0 {
		return
	}
	for name, f := range o.functions {
		at(b.functions, name).Merge(f)
	}
	for key, sums := range o.ranks {
		at(b.ranks, key).Merge(sums)
	}
	for name, sums := range o.counters {
		at(b.counters, name).Merge(sums)
	}
	for program, p := range o.paths {
		b.pathsOf(program).MergeProfile(p)
	}
	if o.load != nil {
		b.addLoad(o.load)
	}
	b.reports = append(b.reports, o.reports[:min(len(o.reports), maxReports-len(b.reports))]...)
}

// steps returns the number of steps that the bundle covers.
func (b *bundle) steps() (n int64) {
	for _, s := range b.covers {
		n += int64(s.GetTo() - s.GetFrom())
	}
	return n
}

// message writes the bundle to an exchange, and returns how many bytes the load has. id returns the ids of functions; names
// has the functions of the load by the analyzer's numbers. The delta of the exchange is valid until the next call.
func (b *bundle) message(req *protocol.ExchangeRequest, id func(trace.FuncKey) int, names []trace.FuncKey) (load int) {
	for _, steps := range b.covers {
		req.Steps = append(req.Steps, steps)
	}
	d := &b.spare.delta
	*d = summary.Delta{
		Models:    slices.Grow(d.Models[:0], len(b.models)),
		Functions: slices.Grow(d.Functions[:0], len(b.functions)),
		Ranks:     slices.Grow(d.Ranks[:0], len(b.ranks)),
		Counters:  slices.Grow(d.Counters[:0], len(b.counters)),
	}
	for context, m := range b.models {
		d.Models = append(d.Models, summary.ModelDelta{ID: id(context.FuncKey), Path: context.Path, Model: *m})
	}
	for name, f := range b.functions {
		f.ID = id(name)
		d.Functions = append(d.Functions, *f)
	}
	for key, sums := range b.ranks {
		d.Ranks = append(d.Ranks, summary.RankDelta{RankKey: key, Anomalies: *sums})
	}
	for name, sums := range b.counters {
		if sums.Count() > 0 {
			d.Counters = append(d.Counters, summary.Counter{FuncKey: name, Values: *sums})
		}
	}
	for program, p := range b.paths {
		if list := p.Append(nil); len(list) > 0 || p.Depth() < callpath.MaxDepth {
			for i := range list {
				if e := &list[i]; e.Func != callpath.Other {
					e.Func = uint32(id(trace.FuncKey{Program: program, Name: p.Name(e.Func)}))
				}
			}
			d.Paths = append(d.Paths, summary.PathDelta{Program: program, Depth: p.Depth(), List: list})
		}
	}
	for i := range b.reports {
		for j := range b.reports[i].Functions {
			f := &b.reports[i].Functions[j]
			f.ID = id(f.FuncKey)
		}
	}
	d.Steps = b.reports
	if b.load != nil {
		d.Load = workload.New()
		d.Load.Merge(b.load, func(_ trace.Program, function uint32) uint32 { return uint32(id(names[function])) })
	}
	b.spare.encoded, load = d.AppendBinary(b.spare.encoded[:0])
	req.Delta = b.spare.encoded
	clear(d.Models) // which share memory with those of the bundle
	return load
}
