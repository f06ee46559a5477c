package blame

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// gathering is a collective call with the ranks that lost time in it.
type gathering struct {
	span
	program trace.Program
	since   trace.Ticks                // exit of the previous gathering, or the earliest time to consider
	arrival map[trace.Rank]trace.Ticks // of ranks that lost time
	why     []reasons                  // of late ranks, the largest first
	hasWhy  bool                       // why is set
	blamed  bool                       // all of why are culprits
}

// gather groups waits by collective call. When the first rank leaves a call, all others are in it, and they stay no longer
// than they have already been in it.
func (f *finder) gather() {
	type last struct {
		*gathering
		leaves trace.Ticks // exit of the first rank
	}
	calls := make(map[trace.FuncKey]last)
	for _, i := range f.waits {
		w := &f.all[i]
		if w.Wait != Group {
			continue
		}
		k := w.funcKey()
		g := calls[k]
		if g.gathering == nil || w.Entry >= g.leaves || w.Exit-g.leaves > g.leaves-w.Entry {
			next := &gathering{span: w.span(), program: w.Program, since: f.since[i], arrival: make(map[trace.Rank]trace.Ticks)}
			if g.gathering != nil && g.exit <= w.Entry {
				next.since = max(next.since, g.exit)
			}
			g = last{next, w.Exit}
			calls[k] = g
		}
		g.entry, g.exit = min(g.entry, w.Entry), max(g.exit, w.Exit)
		g.arrival[w.Rank] = max(g.arrival[w.Rank], w.Entry)
		f.gathered[i] = g.gathering
	}
}

// reasons returns the reasons why ranks were late: those that arrived in the second half of the call, or did not wait in
// it.
func (g *gathering) reasons(f *finder) []reasons {
	if !g.hasWhy {
		g.hasWhy = true
		g.why = f.explain(g.late(f, f.programs[g.program].during(g.since, g.exit)), g.span, g.since, g.arrival)
	}
	return g.why
}

// late returns the anomalies on late ranks by rank and thread.
func (g *gathering) late(f *finder, all []int32) []int32 {
	half := g.half()
	return f.byThread(slices.DeleteFunc(all, func(i int32) bool {
		at, waited := g.arrival[f.all[i].Rank]
		return waited && at <= half || f.all[i].Lost <= 0
	}))
}

// nobodyLate reports whether all ranks of a program lost time in the call and arrived in its first half: the operation itself took
// long.
func (g *gathering) nobodyLate(ranks int) bool {
	half := g.half()
	for _, at := range g.arrival {
		if at > half {
			return false
		}
	}
	return ranks > 1 && len(g.arrival) == ranks
}
