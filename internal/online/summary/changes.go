package summary

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// FindChanges returns the functions whose usual time has changed, for the rest of the run or for a while, ordered by program and
// name.
func FindChanges(functions []FunctionModels) []Change {
	changes := []Change{}
	for i := range functions {
		f := &functions[i]
		if f.Ignored {
			continue
		}
		if s, ok := f.Model.Shift(); ok {
			changes = append(changes, f.change(&s, functions))
		} else if c, ok := f.slowdown(); ok {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return trace.FuncKey{Program: a.Program, Name: a.Function}.Compare(trace.FuncKey{Program: b.Program, Name: b.Function})
	})
	return changes
}

func (f *FunctionModels) change(s *outlier.Shift, functions []FunctionModels) Change {
	kind := "shift"
	if s.Drift {
		kind = "drift"
	}
	c := Change{
		Program: f.Program, Function: f.Name, Kind: kind, Since: trace.Ticks(s.Since), Before: s.Before, After: s.After, Calls: s.Calls,
		Lost: s.Lost,
	}
	f.countCallsMade(s, functions, &c)
	return c
}

// slowdown returns the costliest time in which calls on a path with equal work took longer, with those of other paths that overlap it.
func (f *FunctionModels) slowdown() (c Change, ok bool) {
	var all []outlier.Shift
	if f.NumPaths == 0 {
		if s, ok := f.Model.Slowdown(); ok {
			all = append(all, s)
		}
	}
	for _, m := range f.Paths {
		if s, ok := m.Slowdown(); ok {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return Change{}, false
	}
	most := slices.MaxFunc(all, func(a, b outlier.Shift) int { return cmp.Compare(a.Lost, b.Lost) })
	c = Change{
		Program: f.Program, Function: f.Name, Kind: "temporary", Since: trace.Ticks(most.Since), Until: trace.Ticks(most.Until),
		Before: most.Before, After: most.After,
	}
	for i := range all {
		if s := &all[i]; s.Since < most.Until && most.Since < s.Until {
			c.Calls, c.Lost = c.Calls+s.Calls, c.Lost+s.Lost
		}
	}
	return c, true
}

// maxExtended limits the call paths that countCallsMade considers, and so its time.
const maxExtended = 1 << 20

// countCallsMade sets how many calls a call of a function made on average before and after its time changed, by the number of
// calls on paths that extend one of its paths, and the calls that are no longer recorded. It sets nothing if there are too
// many paths.
func (f *FunctionModels) countCallsMade(s *outlier.Shift, functions []FunctionModels, c *Change) {
	if f.Model.Made.Total() == 0 || f.NumPaths*len(functions)*len(callpath.Hash(0).Hashes()) > maxExtended {
		return
	}
	count := func(m *outlier.Model, before, after *float64) {
		*before += m.CallsBetween(math.MinInt64, s.BeforeEnd)
		*after += m.CallsBetween(s.AfterBegin, math.MaxInt64)
	}
	var own []callpath.Hash
	var calls, later, most float64
	for path, m := range f.Paths {
		own = append(own, path.Path())
		count(m, &calls, &later)
	}
	slices.Sort(own)
	for i := range functions {
		g := &functions[i]
		if g.Program != f.Program {
			continue
		}
		inside := make(map[callpath.Hash]bool)
		for _, path := range slices.Compact(own) {
			for _, h := range path.Hashes() {
				inside[h.Then(g.Name).Path()] = true
			}
		}
		var before, after, shortlyBefore float64
		for path, m := range g.Paths {
			if inside[path.Path()] {
				count(m, &before, &after)
				shortlyBefore += m.CallsBetween(s.BeforeEnd-(s.BeforeEnd-s.Begin)/2, s.BeforeEnd)
			}
		}
		ends := stopped*shortlyBefore > before && g.Throttled(g.Exclusive.Count())
		before, after = before/max(1, calls), after/max(1, later)
		c.MadeBefore, c.MadeAfter = c.MadeBefore+before, c.MadeAfter+after
		if ends && before > max(most, stopped*after) {
			most, c.Unrecorded = before, g.Name
		}
	}
}

// stopped is the factor by which the calls of a function decrease if most ranks no longer record them: at the change, and not
// before the last half of the time until then.
const stopped = 10
