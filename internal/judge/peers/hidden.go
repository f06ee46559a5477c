package peers

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A unit whose work as a whole takes no longer than that of its peers may still be slow: what it loses in one function, the
// others lose in functions that wait for it without being known to wait, such as one that joins a thread. It is slow if its
// calls of the function take at least hiddenRatio times as long as those of each of hiddenPeers or more peers that call it
// equally often, and it loses at least leastSaved of its time there.
const (
	hiddenRatio = 2
	hiddenPeers = 3
)

// hidden finds units that are slow in one function only.
func (c *comparison) hidden(units []*unit) {
	if len(units) <= hiddenPeers || slices.ContainsFunc(units, func(u *unit) bool { return u.slow != nil }) {
		return
	}
	totals := make([]map[uint32]functionTime, len(units))
	for i, u := range units {
		totals[i] = make(map[uint32]functionTime)
		c.each(u, func(_ int, cell workload.Cell) {
			n := c.works[cell.Work].Function
			f := totals[i][n]
			f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
			totals[i][n] = f
		})
	}
	for i, u := range units {
		var worst *interval
		var function uint32
		for n, f := range totals[i] {
			if f.time < leastSaved*float64(u.Last-u.First) {
				continue
			}
			usual, spread, ok := usualOf(n, i, totals)
			if !ok || f.time-f.calls*usual < leastSaved*float64(u.Last-u.First) {
				continue
			}
			v := c.hiddenInterval(u, n, usual, max(spread, leastSpread))
			if v != nil && (worst == nil || v.lostOwn > worst.lostOwn || v.lostOwn == worst.lostOwn && n < function) {
				worst, function = v, n
			}
		}
		if worst != nil {
			c.exposeFunction(u, function, worst)
		}
	}
}

// usualOf returns the median of the mean times of the calls of a function on all units but one, and the deviation of their
// logarithms; false unless all call it equally often and the calls of that one take far longer than those of each other.
func usualOf(function uint32, one int, totals []map[uint32]functionTime) (usual, spread float64, ok bool) {
	own := totals[one][function]
	var means, logs []float64
	for i := range totals {
		f := totals[i][function]
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

// hiddenInterval returns when the calls of a function take far longer than usual on a unit, or nil.
func (c *comparison) hiddenInterval(u *unit, function uint32, usual, spread float64) *interval {
	byWindow := make([]functionTime, c.windows)
	c.each(u, func(w int, cell workload.Cell) {
		if c.works[cell.Work].Function == function {
			byWindow[w].calls += float64(cell.Calls)
			byWindow[w].time += float64(cell.Exclusive)
		}
	})
	var windows []int
	var values []float64
	for w, f := range byWindow {
		if f.calls > 0 && f.time > 0 {
			windows, values = append(windows, w), append(values, math.Log(f.time/f.calls/usual))
		}
	}
	from, to := c.segment(values, math.Log(hiddenRatio))
	if to == 0 || mean(values[from:to]) < leastZ*spread {
		return nil
	}
	margin := max(1, int(edge*float64(len(windows))))
	v := &interval{
		first: windows[from], last: windows[to-1], start: from <= margin, open: len(windows)-to <= margin, weak: u.peers < enoughPeers,
		from: u.First, to: u.Last, level: mean(values[from:to]), pattern: provenance.Phase,
	}
	v.z = v.level / spread
	v.chance = studentTail(v.z, float64(u.peers-1))
	if !v.start {
		v.from, _ = c.bounds(v.first)
	} else {
		v.first = 0
	}
	if !v.open {
		_, v.to = c.bounds(v.last)
	} else {
		v.last = c.windows - 1
	}
	switch {
	case v.start && v.open:
		v.pattern = provenance.Always
	case v.open:
		v.pattern = provenance.Since
	}
	of := functionTime{}
	for w := v.first; w <= v.last; w++ {
		f := byWindow[w]
		of.calls, of.time, of.expected = of.calls+f.calls, of.time+f.time, of.expected+f.calls*usual
	}
	v.lostOwn = of.time - of.expected
	v.functions = map[uint32]functionTime{function: of}
	if v.lostOwn < leastSaved*float64(v.to-v.from) {
		return nil
	}
	return v
}

// exposeFunction makes a unit slow in a function.
func (c *comparison) exposeFunction(u *unit, function uint32, v *interval) {
	lost := make([]float64, c.windows)
	usual := v.functions[function].expected / v.functions[function].calls
	c.each(u, func(w int, cell workload.Cell) {
		if v.includes(w) && c.works[cell.Work].Function == function {
			lost[w] += float64(cell.Exclusive) - float64(cell.Calls)*usual
		}
	})
	c.expose(u, v, lost)
}

// expose makes a unit slow: what it loses in windows is beyond the time that its peers need.
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

// hiddenMost limits the ratio in a window. Calls count in the window in which they end, also if they took longer than that.
const hiddenMost = 100
