package paramclient

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// inbox holds contributions of ranks until all shards have reported which steps they already have
// from an earlier session. For that it keeps steps separate, up to a limit.
type inbox struct {
	limit  int // functions in all steps that are kept apart
	ranks  map[trace.RankKey]*backlog
	size   int                                 // functions in all steps that are kept apart
	models map[callpath.Context]*outlier.Model // of all contributions
}

// backlog holds the steps of a rank in order: separate, or joined if there were too many.
type backlog struct {
	apart  []*deltas.Contribution
	joined *bundle
	first  uint32 // step of joined
}

func newInbox(limit int) inbox {
	return inbox{limit: limit, ranks: make(map[trace.RankKey]*backlog), models: make(map[callpath.Context]*outlier.Model)}
}

// add keeps a copy of a contribution.
func (x *inbox) add(c *deltas.Contribution) {
	w := at(x.ranks, c.RankKey)
	x.addModels(c)
	if w.joined != nil {
		w.join(c)
		return
	}
	w.apart = append(w.apart, clone(c))
	if x.size += sizeOf(c); x.size <= x.limit {
		return
	}
	x.size = 0
	for _, w := range x.ranks {
		if w.joined != nil {
			continue
		}
		w.first, w.joined = uint32(w.apart[0].Step), newBundle()
		for _, c := range w.apart {
			w.join(c)
		}
		w.apart = nil
	}
}

// sizeOf returns the size of a contribution in functions; call paths are much
// smaller.
func sizeOf(c *deltas.Contribution) int {
	return len(c.Functions) + len(c.Contexts) + len(c.Paths)/16
}

// join adds a step to those that are joined. A shard that has only some of the joined steps cannot
// use them.
func (w *backlog) join(c *deltas.Contribution) {
	if steps := w.joined.covers[c.RankKey]; steps != nil && uint32(c.Step) < steps.GetTo() {
		w.joined.end(c.RankKey, w.first, c.Host) // reported after the last step
		return
	}
	w.joined.add(c, w.first, 0, 1)
	if c.Load != nil {
		w.joined.addLoad(c.Load)
		w.joined.covers[c.RankKey].Loaded = uint32(c.Step) + 1
	}
}

// clone returns a deep copy of a contribution.
func clone(c *deltas.Contribution) *deltas.Contribution {
	d := *c
	d.Functions = make([]deltas.Function, len(c.Functions))
	d.Counters = make([]*summary.Counter, len(c.Counters))
	for i := range c.Functions {
		f := &c.Functions[i]
		stats, model := *f.FunctionStats, f.Model.Clone()
		d.Functions[i] = deltas.Function{FunctionStats: &stats, Model: &model}
	}
	d.Contexts = make([]deltas.Context, len(c.Contexts))
	for i := range c.Contexts {
		d.Contexts[i] = deltas.Context{Context: c.Contexts[i].Context, Model: new(c.Contexts[i].Model.Clone())}
	}
	d.Paths = slices.Clone(c.Paths)
	if c.Load != nil {
		d.Load = c.Load.Clone()
	}
	for i, counter := range c.Counters {
		d.Counters[i] = new(*counter)
	}
	return &d
}

// drain removes the ranks that are claimed and calls take for each.
func (x *inbox) drain(claimed func(trace.RankKey) bool, take func(trace.RankKey, *backlog)) {
	before := len(x.ranks)
	for key, w := range x.ranks {
		if !claimed(key) {
			continue
		}
		for _, step := range w.apart {
			x.size -= sizeOf(step)
		}
		delete(x.ranks, key)
		take(key, w)
	}
	if len(x.ranks) == before {
		return
	}
	clear(x.models)
	for _, w := range x.ranks {
		for _, c := range w.apart {
			x.addModels(c)
		}
		if w.joined != nil {
			for name, m := range w.joined.models {
				at(x.models, name).Merge(m)
			}
		}
	}
}

func (x *inbox) addModels(c *deltas.Contribution) {
	for context, m := range models(c) {
		at(x.models, context).Merge(m)
	}
}

// steps returns the number of steps in the inbox.
func (x *inbox) steps() (n int64) {
	for _, w := range x.ranks {
		n += int64(len(w.apart))
		if w.joined != nil {
			n += w.joined.steps()
		}
	}
	return n
}
