package peers

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// isCompensated reports whether a unit spends less time than its peers on other work: at least half of what it loses in one
// function, and more than the work of its peers varies.
func (c *comparison) isCompensated(r *role, u, part *unit, g *group) bool {
	v, rest, all := part.slow, 0., 0.
	for w := v.first; w <= v.last; w++ {
		rest += (u.time[w] - u.expected[w]) - (part.time[w] - part.expected[w])
		all += u.expected[w]
	}
	return -rest > max(v.lostOwn/2, edges*max(leastSpread, g.spreadIn(r.units, v.first, v.last))*all)
}

// reveal makes a unit slow in a function if others wait for it in functions whose names do not show that they wait, or outside of
// calls: at least half of what the unit loses. The time of others there is not useful.
func (c *comparison) reveal(units []*unit, one int, part *unit) {
	u, v := units[one], part.slow
	waits := c.hiddenWaits(units, one, v)
	var totals []float64
	for i, o := range units {
		if i != one {
			totals = append(totals, sum(waits[i])+sum(o.idle[v.first:v.last+1]))
		}
	}
	if waited := median(totals) - sum(u.idle[v.first:v.last+1]); 2*waited < v.lostOwn {
		return
	}
	for i, o := range units {
		for w, time := range waits[i] {
			time = min(time, max(0, o.useful[w]))
			o.useful[w], o.wait[w] = o.useful[w]-time, o.wait[w]+time
		}
	}
	c.expose(u, v, part.beyond())
}

// hiddenWaits returns the times that units wait for one in an interval, by unit and window. They wait in functions that all
// call equally often and that take less time on that unit than on each other unit: the time by which the functions take
// longer on the others.
func (c *comparison) hiddenWaits(units []*unit, one int, v *interval) [][]float64 {
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
		own := all[one]
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
		if i == one {
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

// expose makes a unit slow in an interval. What it loses in windows is beyond the time that its peers need.
func (c *comparison) expose(u *unit, v *interval, lost []float64) {
	u.slow = v
	for w := range lost {
		if !v.includes(w) {
			lost[w] = 0
		}
		useful := max(0, u.useful[w])
		u.time[w], u.expected[w] = useful, max(useful/mostRatio, useful-lost[w])
		if u.excess[w] = 0; useful > 0 {
			u.excess[w] = math.Log(useful / u.expected[w])
		}
	}
}

// mostRatio limits the ratio in a window. Calls count in the window in which they end, even if they took longer than the window.
const mostRatio = 100
