package paramclient

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// inbox holds what ranks learned before all shards have said how far they know
// them, which may be from an earlier session. So steps are kept apart, as long as
// they are not too many.
type inbox struct {
	shards int
	limit  int // functions in all steps that are kept apart
	ranks  map[trace.RankKey]*waiting
	size   int                              // functions in all steps that are
	models map[trace.FuncKey]*outlier.Model // what all of it says
}

// waiting are the steps of a rank, in order: at first apart, and those from first
// on for each shard in one, when they were too many.
type waiting struct {
	apart  []*analyzer.Contribution
	joined []*bundle
	first  uint32
}

func newInbox(shards, limit int) inbox {
	return inbox{shards: shards, limit: limit, ranks: make(map[trace.RankKey]*waiting), models: make(map[trace.FuncKey]*outlier.Model)}
}

// add keeps a copy of what a rank learned.
func (x *inbox) add(key trace.RankKey, c *analyzer.Contribution) {
	for i := range c.Functions {
		f := &c.Functions[i]
		at(x.models, f.FuncKey).Merge(f.Model)
	}
	w := at(x.ranks, key)
	if w.joined != nil {
		w.join(key, c)
		return
	}
	w.apart = append(w.apart, clone(c))
	if x.size += sizeOf(c); x.size <= x.limit {
		return
	}
	x.size = 0
	for key, w := range x.ranks {
		w.joinAll(key, x.shards)
	}
}

// sizeOf is how many functions a step counts for: call paths are much smaller.
func sizeOf(c *analyzer.Contribution) int { return len(c.Functions) + len(c.Paths)/16 }

// joinAll makes all steps of the rank one. A shard that knows some of them, but
// not all, cannot use it.
func (w *waiting) joinAll(key trace.RankKey, shards int) {
	if w.joined != nil {
		return
	}
	w.first = uint32(w.apart[0].Step)
	for range shards {
		w.joined = append(w.joined, newBundle())
	}
	for _, c := range w.apart {
		w.join(key, c)
	}
	w.apart = nil
}

func (w *waiting) join(key trace.RankKey, c *analyzer.Contribution) {
	for shard, b := range w.joined {
		if steps := b.covers[key]; steps != nil && uint32(c.Step) < steps.GetTo() {
			b.end(key, w.first, c.Host) // told after the last step
			continue
		}
		b.add(c, w.first, shard, len(w.joined))
	}
}

// reshard divides what waits among n shards.
func (x *inbox) reshard(n int) {
	x.shards = n
	for _, w := range x.ranks {
		if w.joined == nil {
			continue
		}
		old := w.joined
		w.joined = nil
		for range n {
			b := newBundle()
			for key, steps := range old[0].covers {
				b.covers[key] = proto.CloneOf(steps)
			}
			w.joined = append(w.joined, b)
		}
		first := *old[0]
		first.models, first.covers = w.joined[0].models, w.joined[0].covers
		w.joined[0] = &first
		for _, b := range old {
			for name, m := range b.models {
				w.joined[paramwire.ShardOf(name, n)].models[name] = m
			}
		}
	}
}

// clone returns a copy of all that a contribution refers to.
func clone(c *analyzer.Contribution) *analyzer.Contribution {
	d := *c
	d.Functions = make([]analyzer.Found, len(c.Functions))
	d.Counters = make([]*summary.Counter, len(c.Counters))
	for i := range c.Functions {
		f := &c.Functions[i]
		stats, model := *f.FunctionStats, f.Model.Clone()
		d.Functions[i] = analyzer.Found{FunctionStats: &stats, Model: &model}
	}
	d.Paths = slices.Clone(c.Paths)
	for i, counter := range c.Counters {
		own := *counter
		d.Counters[i] = &own
	}
	return &d
}

// drain hands over what waits of ranks that are claimed.
func (x *inbox) drain(claimed func(trace.RankKey) bool, take func(trace.RankKey, *waiting)) {
	found := false
	for key, w := range x.ranks {
		if !claimed(key) {
			continue
		}
		found = true
		for _, step := range w.apart {
			x.size -= sizeOf(step)
		}
		delete(x.ranks, key)
		take(key, w)
	}
	if !found {
		return
	}
	clear(x.models)
	for _, w := range x.ranks {
		x.addModels(w)
	}
}

func (x *inbox) addModels(w *waiting) {
	for _, c := range w.apart {
		for i := range c.Functions {
			f := &c.Functions[i]
			at(x.models, f.FuncKey).Merge(f.Model)
		}
	}
	for _, b := range w.joined {
		for name, m := range b.models {
			at(x.models, name).Merge(m)
		}
	}
}

func (x *inbox) empty() bool { return len(x.ranks) == 0 }

// steps is how many steps wait.
func (x *inbox) steps() (n int64) {
	for _, w := range x.ranks {
		n += int64(len(w.apart))
		if w.joined != nil {
			n += w.joined[0].steps()
		}
	}
	return n
}
