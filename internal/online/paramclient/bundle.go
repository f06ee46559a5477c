package paramclient

import (
	"maps"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// bundle is what was learned of some steps of some ranks, as far as a shard is
// to know it. Its size depends on the functions, not on the steps. What is empty in
// it was not learned: only its memory is there.
type bundle struct {
	covers   map[trace.RankKey]*protocol.Steps
	models   map[trace.FuncKey]*outlier.Model
	profiles map[trace.FuncKey]*summary.FunctionStats // these and the following
	ranks    map[trace.RankKey]*stats.Sums            // only for
	counters map[trace.FuncKey]*stats.Sums            // the first shard
	found    []summary.StepReport                     // functions by name
	paths    map[trace.Program]*callpath.Profile
}

func newBundle() *bundle {
	return &bundle{
		covers: make(map[trace.RankKey]*protocol.Steps), models: make(map[trace.FuncKey]*outlier.Model),
		profiles: make(map[trace.FuncKey]*summary.FunctionStats), ranks: make(map[trace.RankKey]*stats.Sums),
		counters: make(map[trace.FuncKey]*stats.Sums), paths: make(map[trace.Program]*callpath.Profile),
	}
}

// pathsOf returns the call paths of a program, which are made if they are new.
func (b *bundle) pathsOf(program trace.Program) *callpath.Profile {
	p := b.paths[program]
	if p == nil {
		p = callpath.NewProfile(callpath.MaxPaths)
		b.paths[program] = p
	}
	return p
}

// emptied returns a bundle that uses the memory of b, which was sent, again. Its
// models are kept until they came back; others, that are not needed any more, take
// their place.
func (b *bundle) emptied(models map[trace.FuncKey]*outlier.Model) *bundle {
	for _, m := range models {
		m.Reset()
	}
	for _, p := range b.profiles {
		*p = summary.FunctionStats{}
	}
	for _, sums := range b.ranks {
		*sums = stats.Sums{}
	}
	for _, sums := range b.counters {
		*sums = stats.Sums{}
	}
	for _, p := range b.paths {
		p.Reset()
	}
	return &bundle{
		covers: make(map[trace.RankKey]*protocol.Steps), models: models,
		profiles: b.profiles, ranks: b.ranks, counters: b.counters, paths: b.paths,
	}
}

// at returns the value of a key, made if it is new.
func at[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

// maxFound is how many steps with anomalies are told one by one; of more, which
// come together only when a server was away for long, just the sums are.
const maxFound = 1 << 14

// cover returns which steps of a rank are covered, at first none from the given
// one on.
func (b *bundle) cover(key trace.RankKey, from uint32) *protocol.Steps {
	steps := b.covers[key]
	if steps == nil {
		steps = &protocol.Steps{Program: uint32(key.Program), Rank: uint32(key.Rank), From: from, To: from}
		b.covers[key] = steps
	}
	return steps
}

// add adds what a rank learned in a step that is not covered yet. from is the
// first step of the rank that the shard does not know.
func (b *bundle) add(c *analyzer.Contribution, from uint32, shard, shards int) {
	steps := b.cover(c.RankKey, from)
	steps.To = uint32(c.Step) + 1
	steps.Ended = steps.GetEnded() || c.Ended
	steps.Host = c.Host
	for i := range c.Functions {
		f := &c.Functions[i]
		if f.Model.Count() > 0 && paramwire.ShardOf(f.FuncKey, shards) == shard {
			at(b.models, f.FuncKey).Merge(f.Model)
		}
		if shard == 0 {
			p := at(b.profiles, f.FuncKey)
			p.Exclusive.Merge(&f.Exclusive)
			p.Inclusive.Merge(&f.Inclusive)
			p.PerStep.Add(uint64(f.Anomalies.Score.N))
		}
	}
	if shard != 0 {
		return
	}
	for _, counter := range c.Counters {
		at(b.counters, counter.FuncKey).Merge(&counter.Values)
	}
	b.pathsOf(c.Program).Merge(c.PathDepth, c.Paths)
	b.addFound(c)
}

// end adds that a rank has no further steps.
func (b *bundle) end(key trace.RankKey, from uint32, host string) {
	steps := b.cover(key, from)
	steps.Ended, steps.Host = true, host
}

// merge adds what o holds, which covers other ranks. o must not be used any more.
func (b *bundle) merge(o *bundle) {
	maps.Copy(b.covers, o.covers)
	for name, m := range o.models {
		at(b.models, name).Merge(m)
	}
	for name, p := range o.profiles {
		at(b.profiles, name).Merge(p)
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
	b.found = append(b.found, o.found[:min(len(o.found), maxFound-len(b.found))]...)
}

// steps is how many steps are covered.
func (b *bundle) steps() (n int64) {
	for _, s := range b.covers {
		n += int64(s.GetTo() - s.GetFrom())
	}
	return n
}

// addFound adds the anomalies of a step.
func (b *bundle) addFound(c *analyzer.Contribution) {
	step := summary.StepReport{RankKey: c.RankKey, Step: int32(c.Step), First: c.First, Last: c.Last}
	for i := range c.Functions {
		f := &c.Functions[i]
		if f.Anomalies.Empty() {
			continue
		}
		own := summary.FunctionStats{FuncKey: f.FuncKey, Anomalies: f.Anomalies}
		own.Anomalies.Count.Add(uint64(f.Anomalies.Score.N))
		step.Scores.Merge(f.Anomalies.Score)
		step.Functions = append(step.Functions, own)
	}
	at(b.ranks, c.RankKey).Add(uint64(step.Scores.N))
	if len(step.Functions) > 0 && len(b.found) < maxFound {
		b.found = append(b.found, step)
	}
}

// empty reports whether nothing was learned, not even that a rank has ended.
func (b *bundle) empty() bool { return len(b.covers) == 0 }

// message writes the bundle into an exchange. number returns the numbers of
// functions, all of which must have one.
func (b *bundle) message(req *protocol.ExchangeRequest, first bool, number func(trace.FuncKey) int) {
	for _, steps := range b.covers {
		req.Steps = append(req.Steps, steps)
	}
	var d summary.Delta
	for name, m := range b.models {
		if m.Count() > 0 {
			d.Models = append(d.Models, summary.ModelDelta{ID: number(name), Model: *m})
		}
	}
	if first {
		b.summarize(&d, number)
	}
	req.Delta = d.AppendBinary(make([]byte, 0, 256*(len(d.Models)+len(d.Functions)+len(d.Counters))))
}

// summarize adds to the delta what the first shard is to know besides models.
func (b *bundle) summarize(d *summary.Delta, number func(trace.FuncKey) int) {
	for name, f := range b.profiles {
		if f.PerStep.Count() > 0 { // anomalies are counted for each step with calls
			f.ID = number(name)
			d.Functions = append(d.Functions, *f)
		}
	}
	for key, sums := range b.ranks {
		if sums.Count() > 0 {
			d.Ranks = append(d.Ranks, summary.RankDelta{RankKey: key, Anomalies: *sums})
		}
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
					e.Func = uint32(number(trace.FuncKey{Program: program, Name: p.Name(e.Func)}))
				}
			}
			d.Paths = append(d.Paths, summary.PathDelta{Program: program, Depth: p.Depth(), List: list})
		}
	}
	for i := range b.found {
		for j := range b.found[i].Functions {
			f := &b.found[i].Functions[j]
			f.ID = number(f.FuncKey)
		}
	}
	d.Steps = b.found
}
