package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A unit whose work in total takes no longer than that of its peers may still be slow: what it loses in one function, the others
// lose in functions that wait for it although their names do not show that, such as one that joins a thread. The unit is slow in an
// interval if its calls of the function take at least hiddenRatio times as long as those of each of at least hiddenPeers peers that
// call it equally often, if it loses at least leastSaved of its time there, and if it spends less time than each of them in other
// functions, or outside of calls: at least half of what it loses.
const (
	hiddenRatio = 2
	hiddenPeers = 3
)

// hiddenCase is a unit that may be slow in one function.
type hiddenCase struct {
	unit     int
	function uint32
	beyond   float64 // time beyond that of other units
}

// hidden finds units that are slow in one function only.
func (c *comparison) hidden(units []*unit) {
	if len(units) <= hiddenPeers || slices.ContainsFunc(units, func(u *unit) bool { return u.slow != nil }) {
		return
	}
	cases := c.hiddenCases(units)
	slots := make(map[uint32]int) // by function
	for _, x := range cases {
		if _, ok := slots[x.function]; !ok {
			slots[x.function] = len(slots)
		}
	}
	series := make([][]functionTime, len(slots)) // by function, then by unit and window
	for i := range series {
		series[i] = make([]functionTime, len(units)*c.windows)
	}
	for i, u := range units {
		c.each(u, func(w int, cell workload.Cell) {
			if slot, ok := slots[c.works[cell.Work].Function]; ok {
				f := &series[slot][i*c.windows+w]
				f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
			}
		})
	}
	for _, x := range cases {
		if v := c.hiddenInterval(units, x, series[slots[x.function]]); v != nil {
			c.reveal(units, x, v)
		}
	}
}

// hiddenCases returns the units that lose much time in a function, each with the function in which it loses most.
func (c *comparison) hiddenCases(units []*unit) (cases []hiddenCase) {
	n := uint32(0)
	for _, w := range c.works {
		n = max(n, w.Function+1)
	}
	all, own := make([]functionTime, n), make([]functionTime, n)
	add := func(sums []functionTime) func(int, workload.Cell) {
		return func(_ int, cell workload.Cell) {
			f := &sums[c.works[cell.Work].Function]
			f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
		}
	}
	for _, u := range units {
		c.each(u, add(all))
	}
	for i, u := range units {
		clear(own)
		c.each(u, add(own))
		worst := hiddenCase{unit: i}
		for number, f := range own {
			if rest := all[number]; f.calls > 0 && rest.calls > f.calls {
				beyond := f.time - f.calls*(rest.time-f.time)/(rest.calls-f.calls)
				if beyond > worst.beyond {
					worst.function, worst.beyond = uint32(number), beyond
				}
			}
		}
		// It is slow at least in intervals of the shortest length.
		if worst.beyond >= leastSaved*float64(u.Last-u.First)*float64(c.fewest)/float64(c.windows) {
			cases = append(cases, worst)
		}
	}
	slices.SortStableFunc(cases, func(a, b hiddenCase) int { return cmp.Compare(b.beyond, a.beyond) })
	return cases[:min(len(cases), mostPlaces)]
}

// hiddenInterval returns when the calls of a function take far longer on a unit than on all others, or nil.
func (c *comparison) hiddenInterval(units []*unit, x hiddenCase, series []functionTime) *interval {
	of := func(unit, w int) functionTime { return series[unit*c.windows+w] }
	var windows []int
	var values, means []float64
	for w := range c.windows {
		means = means[:0]
		for i := range units {
			if f := of(i, w); i != x.unit && f.calls > 0 && f.time > 0 {
				means = append(means, f.time/f.calls)
			}
		}
		if f := of(x.unit, w); f.calls > 0 && f.time > 0 && len(means) >= hiddenPeers {
			windows, values = append(windows, w), append(values, math.Log(f.time/f.calls/median(means)))
		}
	}
	from, to := c.segment(values, math.Log(hiddenRatio))
	if to == 0 {
		return nil
	}
	u, margin := units[x.unit], max(1, int(edge*float64(len(windows))))
	v := &interval{
		first: windows[from], last: windows[to-1], start: from <= margin, open: len(windows)-to <= margin, weak: u.peers < enoughPeers,
		level: mean(values[from:to]), pattern: provenance.Phase,
	}
	switch {
	case v.start && v.open:
		v.pattern = provenance.Always
	case v.open:
		v.pattern = provenance.Since
	}
	sums := make([]functionTime, len(units)) // over the interval
	for i := range units {
		for w := v.first; w <= v.last; w++ {
			f := of(i, w)
			sums[i].calls, sums[i].time = sums[i].calls+f.calls, sums[i].time+f.time
		}
	}
	usual, spread, ok := usualOf(sums, x.unit)
	if v.z = v.level / max(spread, leastSpread); !ok || v.z < leastZ {
		return nil
	}
	v.chance = studentTail(v.z, float64(u.peers-1))
	c.refine(u, v, windows, values, from, to, max(math.Log(leastRatio), edges*spread))
	lost, f := make([]float64, c.windows), functionTime{}
	for w := v.first; w <= v.last; w++ {
		one := of(x.unit, w)
		lost[w] = max(0, one.time-one.calls*usual)
		f.calls, f.time, f.expected = f.calls+one.calls, f.time+one.time, f.expected+one.calls*usual
	}
	v.lostOwn, v.functions, v.lost = f.time-f.expected, map[uint32]functionTime{x.function: f}, lost
	if v.lostOwn < leastSaved*float64(v.to-v.from) {
		return nil
	}
	return v
}

// usualOf returns the median of the mean times of calls of all units but one, and the deviation of their logarithms. It
// returns false unless all units call equally often, and the calls of that unit take far longer than those of each other
// unit.
func usualOf(sums []functionTime, one int) (usual, spread float64, ok bool) {
	own := sums[one]
	var means, logs []float64
	for i, f := range sums {
		if i == one {
			continue
		}
		if f.calls == 0 || f.time == 0 || max(f.calls, own.calls) > sameCalls*min(f.calls, own.calls) ||
			own.time/own.calls < hiddenRatio*f.time/f.calls {
			return 0, 0, false
		}
		means, logs = append(means, f.time/f.calls), append(logs, math.Log(f.time/f.calls))
	}
	return median(means), deviation(logs), true
}

// reveal makes a unit slow in an interval if others wait for it in functions whose names do not show that they wait, or outside of
// calls. The time of others there is not useful.
func (c *comparison) reveal(units []*unit, x hiddenCase, v *interval) {
	waits := c.hiddenWaits(units, x, v)
	var totals []float64
	for i, u := range units {
		if i != x.unit {
			totals = append(totals, sum(waits[i])+sum(u.idle[v.first:v.last+1]))
		}
	}
	if waited := median(totals) - sum(units[x.unit].idle[v.first:v.last+1]); 2*waited < v.lostOwn {
		return
	}
	for i, u := range units {
		for w, time := range waits[i] {
			time = min(time, max(0, u.useful[w]))
			u.useful[w], u.wait[w] = u.useful[w]-time, u.wait[w]+time
		}
	}
	c.expose(units[x.unit], v, v.lost)
}

// hiddenWaits returns the times that units wait for one in an interval, by unit and window. They wait in functions that all
// call equally often and that take less time on that unit than on each other unit: the time by which the functions take
// longer on the others.
func (c *comparison) hiddenWaits(units []*unit, x hiddenCase, v *interval) [][]float64 {
	sums := make(map[uint32][]functionTime)
	for i, u := range units {
		c.each(u, func(w int, cell workload.Cell) {
			if !v.includes(w) {
				return
			}
			n := c.works[cell.Work].Function
			if sums[n] == nil {
				sums[n] = make([]functionTime, len(units))
			}
			f := &sums[n][i]
			f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
		})
	}
	shortest := make(map[uint32]float64) // time of calls of the one unit
	for n, all := range sums {
		own := all[x.unit]
		least := !slices.ContainsFunc(all, func(f functionTime) bool {
			return f.calls == 0 || max(f.calls, own.calls) > sameCalls*min(f.calls, own.calls) || f.time/f.calls < own.time/own.calls
		})
		if least && own.calls > 0 {
			shortest[n] = own.time / own.calls
			v.waits = append(v.waits, n)
		}
	}
	waits := make([][]float64, len(units))
	for i, u := range units {
		waits[i] = make([]float64, c.windows)
		if i == x.unit {
			continue
		}
		c.each(u, func(w int, cell workload.Cell) {
			if time, ok := shortest[c.works[cell.Work].Function]; ok && v.includes(w) {
				waits[i][w] += max(0, float64(cell.Exclusive)-float64(cell.Calls)*time)
			}
		})
	}
	return waits
}

// expose makes a unit slow. What it loses in windows is beyond the time that its peers need.
func (c *comparison) expose(u *unit, v *interval, lost []float64) {
	u.slow = v
	for w := range lost {
		if !v.includes(w) {
			lost[w] = 0
		}
		useful := max(0, u.useful[w])
		u.time[w], u.expected[w] = useful, max(useful/hiddenMost, useful-max(0, lost[w]))
		if u.excess[w] = 0; u.expected[w] > 0 {
			u.excess[w] = math.Log(useful / u.expected[w])
		}
	}
}

// hiddenMost limits the ratio in a window. Calls count in the window in which they end, even if they took longer than the window.
const hiddenMost = 100
