package peers

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// total is the work of one kind of all units of a role, in a window or in the run.
type total struct {
	calls, time float64
	last, units int // the last unit with such work, and the number of units with it
}

func (t *total) add(unit int, cell workload.Cell) {
	t.calls += float64(cell.Calls)
	t.time += float64(cell.Exclusive)
	if t.last != unit {
		t.last = unit
		t.units++
	}
}

// role has units that are compared with each other.
type role struct {
	units  []*unit
	totals [][]total // by window and work; the last window stands for the run
	groups map[any]*group
	of     []*group // by unit
}

// group has units that are not compared with each other: those of a host, because something may slow all of them, or a single unit.
type group struct {
	key      any
	excludes func(*unit) bool
	center   []float64 // by window: median raw ratio of all other units; the median of the run if most of them do nothing in the window
	spread   float64   // how much the means of other units over the shortest intervals differ
	spreads  map[[2]int]float64
}

// smallGroup is a share of units that does not affect the median of all.
const smallGroup = 1. / 8

// compareRole computes the ratios of units with the same role and finds slow ones.
func (c *comparison) compareRole(p *population, units []*unit) {
	r := &role{units: units}
	c.addUp(r)
	t, most := c.tallies(p)
	for _, u := range units {
		c.expect(r, u, t)
		if t != nil {
			u.functions = c.take(u, t, most)
		}
		u.byMean = sum(u.expected)
	}
	if len(units) < 2 {
		return
	}
	c.rate(r)
	for i, u := range units {
		if u.slow = c.interval(p, r, u, r.of[i]); u.slow != nil {
			c.functions(r, u, r.of[i])
		}
	}
	if p.ofRanks {
		c.compareFunctions(p, r)
	}
}

// rate divides the times of units by those of their peers.
func (c *comparison) rate(r *role) {
	hosts := make(map[string]int)
	for _, u := range r.units {
		hosts[u.Host]++
	}
	r.groups, r.of = make(map[any]*group), make([]*group, len(r.units))
	for i, u := range r.units {
		r.of[i] = r.group(c, u, hosts[u.Host])
	}
	for i, u := range r.units { // in a second loop, because groups need the expected times before
		g := r.of[i]
		for w := range u.expected {
			if u.expected[w] <= 0 || math.IsNaN(g.center[w]) {
				u.time[w], u.expected[w] = 0, 0
				continue
			}
			u.excess[w] = u.raw[w] - g.center[w]
			u.expected[w] *= math.Exp(g.center[w])
		}
	}
}

// addUp computes the totals of a role.
func (c *comparison) addUp(r *role) {
	r.totals = make([][]total, c.windows+1)
	for i := range r.totals {
		r.totals[i] = make([]total, len(c.works))
	}
	run := r.totals[c.windows]
	for i, u := range r.units {
		c.each(u, func(w int, cell workload.Cell) {
			r.totals[w][cell.Work].add(i+1, cell)
			run[cell.Work].add(i+1, cell)
		})
	}
}

// mean returns the mean time of calls of units with the role: in a window if most of the units with such work did it in that
// window, and otherwise in the run, because a slow unit may be alone in a window. It is 0 if only one unit does such work.
func (r *role) mean(w int, cell workload.Cell) float64 {
	t, run := &r.totals[w][cell.Work], &r.totals[len(r.totals)-1][cell.Work]
	if run.units < 2 {
		return 0
	}
	if 2*t.units <= run.units {
		t = run
	}
	return t.time / t.calls
}

// expect sets the time of the comparable work of a unit, and the time that the mean of units would have taken. t, if not nil,
// sums up the work by function.
func (c *comparison) expect(r *role, u *unit, t *tally) {
	c.each(u, func(w int, cell workload.Cell) {
		mean := r.mean(w, cell)
		if t != nil {
			t.add(cell, mean)
		}
		u.work[w] += float64(cell.Exclusive)
		if mean > 0 {
			u.time[w] += float64(cell.Exclusive)
			u.expected[w] += float64(cell.Calls) * mean
		}
	})
	u.compare()
}

// compare computes the logarithms of the ratios to the mean of the role.
func (u *unit) compare() {
	for w := range u.time {
		if u.expected[w] > 0 {
			u.raw[w] = math.Log(max(u.time[w], 1) / u.expected[w])
		}
	}
}

// group returns the group of a unit on whose host onHost units run, including itself.
func (r *role) group(c *comparison, u *unit, onHost int) *group {
	n := len(r.units)
	g := &group{key: u, excludes: func(o *unit) bool { return o == u }}
	size := 1
	if hasName(u.Host) && n-onHost >= enoughPeers {
		g.key, g.excludes, size = u.Host, func(o *unit) bool { return o.Host == u.Host }, onHost
	}
	if float64(size) < smallGroup*float64(n) {
		g.key, g.excludes = nil, func(*unit) bool { return false }
	}
	if old := r.groups[g.key]; old != nil {
		return old
	}
	r.groups[g.key] = g
	g.center, g.spreads = make([]float64, c.windows), make(map[[2]int]float64)
	var values, means []float64
	others := slices.DeleteFunc(slices.Clone(r.units), g.excludes)
	for _, o := range others {
		if e := sum(o.expected); e > 0 {
			values = append(values, math.Log(max(1, sum(o.time))/e))
		}
	}
	run := median(values)
	for w := range c.windows {
		values = values[:0]
		for _, o := range others {
			if !math.IsNaN(o.raw[w]) {
				values = append(values, o.raw[w])
			}
		}
		if g.center[w] = run; 2*len(values) > len(others) {
			g.center[w] = median(values)
		}
	}
	for _, o := range others {
		means = appendMeans(means, g.relative(o, 0, c.windows), c.fewest)
	}
	g.spread = deviation(means)
	return g
}

// relative returns the ratios of a unit in some windows.
func (g *group) relative(u *unit, from, to int) (values []float64) {
	for w := from; w < to; w++ {
		if x := u.raw[w] - g.center[w]; !math.IsNaN(x) {
			values = append(values, x)
		}
	}
	return values
}

// spreadIn returns how much the means of other units over an interval differ: the greatest difference if there are few units.
func (g *group) spreadIn(units []*unit, first, last int) float64 {
	key := [2]int{first, last}
	if spread, ok := g.spreads[key]; ok {
		return spread
	}
	var means []float64
	for _, u := range units {
		if g.excludes(u) {
			continue
		}
		if values := g.relative(u, first, last+1); len(values) > 0 {
			means = append(means, mean(values))
		}
	}
	spread := spreadOf(means)
	g.spreads[key] = spread
	return spread
}

// spreadOf returns how much values near 0 differ. It changes the values.
func spreadOf(values []float64) (spread float64) {
	if len(values) >= enoughPeers {
		return deviation(values)
	}
	for _, v := range values { // too few for a median
		spread = max(spread, math.Abs(v))
	}
	return spread
}

// appendMeans appends the means of all sequences of n values.
func appendMeans(means, values []float64, n int) []float64 {
	s := 0.0
	for i, v := range values {
		if s += v; i >= n {
			s -= values[i-n]
		}
		if i >= n-1 {
			means = append(means, s/float64(n))
		}
	}
	return means
}

// hasName reports whether the name of a host is known.
func hasName(host string) bool { return host != "" && host != "Unknown" }

// median returns the median, or NaN if there are no values. It reorders the values.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// deviation returns a robust estimate of the standard deviation, from the median of absolute deviations. It changes the values.
func deviation(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	center := median(values)
	for i := range values {
		values[i] = math.Abs(values[i] - center)
	}
	return 1.4826 * median(values)
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

func standardDeviation(values []float64) float64 {
	center, squares := mean(values), 0.0
	for _, v := range values {
		squares += (v - center) * (v - center)
	}
	return math.Sqrt(squares / float64(len(values)))
}

// functionTime is the work of a function of a slow unit.
type functionTime struct {
	calls, time, expected float64
	peerCalls             float64 // usual number of calls, for a unit with extra work
}

// functions sums up the work of a slow unit by function, and the time that it takes units outside its group.
func (c *comparison) functions(r *role, u *unit, g *group) {
	type cellKey struct {
		window int
		work   uint32
	}
	own := make(map[cellKey]total) // totals of the group
	for _, o := range r.units {
		if o == u || g.excludes(o) {
			c.each(o, func(w int, cell workload.Cell) {
				if u.slow.includes(w) {
					t := own[cellKey{w, cell.Work}]
					t.add(1, cell)
					own[cellKey{w, cell.Work}] = t
				}
			})
		}
	}
	u.slow.functions = make(map[uint32]functionTime)
	c.each(u, func(w int, cell workload.Cell) {
		mean := r.mean(w, cell) * math.Exp(g.center[w])
		if !u.slow.includes(w) || !(mean > 0) {
			return
		}
		all, group := &r.totals[w][cell.Work], own[cellKey{w, cell.Work}]
		if all.calls > group.calls && 2*all.units > len(r.units) {
			mean = (all.time - group.time) / (all.calls - group.calls)
		}
		n := c.works[cell.Work].Function
		f := u.slow.functions[n]
		f.calls += float64(cell.Calls)
		f.time += float64(cell.Exclusive)
		f.expected += float64(cell.Calls) * mean
		u.slow.functions[n] = f
	})
}

// ownRatio returns the time of the work of a unit in an interval, divided by the time of equal work of the unit in the rest
// of the run. It is 0 if there is no equal work.
func (c *comparison) ownRatio(u *unit, includes func(window int) bool) float64 {
	type sums struct{ calls, time float64 }
	inside, outside := make(map[uint32]sums), make(map[uint32]sums)
	c.each(u, func(w int, cell workload.Cell) {
		if u.function != nil && c.works[cell.Work].Function != *u.function {
			return
		}
		of := outside
		if includes(w) {
			of = inside
		}
		s := of[cell.Work]
		of[cell.Work] = sums{s.calls + float64(cell.Calls), s.time + float64(cell.Exclusive)}
	})
	var time, expected float64
	for work, in := range inside {
		if out := outside[work]; out.calls > 0 {
			time += in.time
			expected += in.calls * out.time / out.calls
		}
	}
	if expected <= 0 {
		return 0
	}
	return time / expected
}

// ticks rounds a time to ticks.
func ticks(v float64) trace.Ticks { return trace.Ticks(math.Round(v)) }
