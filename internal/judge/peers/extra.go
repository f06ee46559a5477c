package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A unit does extra work if it works longer than its peers from some time on, or for a while, because it makes more calls
// rather than slower ones. Its peers are the units with its role or, because more calls may give it a role of its own, those
// with the role with which it shares most work, at least extraPeers. Calls of a function are extra if there are more than on
// each peer, as numbers of calls differ between roles, and if they are at most outsideShare as frequent in the rest of the
// run. They explain at least half of the time by which the unit works longer. Its peers must do at least half of the same
// work before, so that a later phase of the program, in which a unit has more to do by design, is not extra work.
const (
	extraPeers   = 3
	outsideShare = 0.25
	mostBases    = 16 // the largest roles, among which to look for peers
)

// longer describes when a unit works longer than its peers.
type longer struct {
	*unit
	peers       []*unit
	center      []float64 // median work of the peers, by window
	first, last int       // windows
	open        bool
}

// extra finds units that do extra work.
func (c *comparison) extra(p *population) {
	roles := p.roles()
	centers := make(map[int][]float64)
	var all []longer
	for _, u := range p.units {
		base := p.base(roles, u)
		if u.slow != nil || base == 0 {
			continue
		}
		if centers[base] == nil {
			centers[base] = c.center(roles[base-1])
		}
		if x, ok := c.longer(p, u, centers[base]); ok {
			x.peers = slices.DeleteFunc(slices.Clone(roles[base-1]), func(o *unit) bool { return o == u })
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b longer) int { return cmp.Compare(b.beyond(), a.beyond()) })
	for i := range all[:min(len(all), mostPlaces)] {
		x := &all[i]
		if v := c.extraOf(p, x); v != nil && (v.first != x.first || v.last != x.last) { // count again for the windows of the interval
			x.first, x.last = v.first, v.last
			c.extraOf(p, x)
		}
	}
}

// base returns the role whose units are the peers of a unit, or 0 if there are too few.
func (p *population) base(roles [][]*unit, u *unit) (base int) {
	if len(roles[u.role-1]) > extraPeers {
		return u.role
	}
	if p.largest == nil {
		p.largest = []int{}
		for i, units := range roles {
			if len(units) >= extraPeers {
				p.largest = append(p.largest, i+1)
			}
		}
		slices.SortStableFunc(p.largest, func(a, b int) int { return cmp.Compare(len(roles[b-1]), len(roles[a-1])) })
		p.largest = p.largest[:min(len(p.largest), mostBases)]
	}
	most := 0.0
	for _, role := range p.largest {
		o := roles[role-1][0]
		var shared, all float64
		for f, calls := range p.calls {
			time := calls[o.index] * p.times[f]
			if all += time; calls[o.index] <= sameCalls*calls[u.index] && calls[u.index] <= sameCalls*calls[o.index] {
				shared += time
			}
		}
		if 2*shared >= all && shared > most {
			base, most = role, shared
		}
	}
	return base
}

// center returns the median work of units, by window.
func (c *comparison) center(units []*unit) []float64 {
	center, values := make([]float64, c.windows), make([]float64, 0, len(units))
	for w := range center {
		values = values[:0]
		for _, u := range units {
			values = append(values, u.work[w])
		}
		center[w] = median(values)
	}
	return center
}

// longer returns when a unit works longer than its peers. It returns false if it does so from the start, because that is its role.
func (c *comparison) longer(p *population, u *unit, center []float64) (x longer, ok bool) {
	least := sum(center) / float64(c.windows) / 10
	var windows []int
	var values []float64
	for w, of := range center {
		if of > 0 && of >= least && u.useful[w] >= 0 {
			windows, values = append(windows, w), append(values, math.Log(max(1, u.work[w])/of))
		}
	}
	from, to := c.segment(values, p.least)
	margin := max(1, int(edge*float64(len(windows))))
	if to == 0 || from <= margin {
		return x, false
	}
	x = longer{unit: u, center: center, first: windows[from], last: windows[to-1], open: len(windows)-to <= margin}
	if x.open {
		x.last = c.windows - 1
	}
	return x, x.beyond() > 0
}

// beyond returns how much longer the unit works than its peers.
func (x *longer) beyond() float64 {
	return sum(x.work[x.first:x.last+1]) - sum(x.center[x.first:x.last+1])
}

// callCounts has the numbers of calls of a function.
type callCounts struct {
	in, out         []float64 // by unit: calls while the unit in question works longer, and in the rest of the run
	byWindow        []float64
	inTime, inCalls float64
	before          float64 // time before
}

// count returns the numbers of calls of units by function.
func (x *longer) count(c *comparison, units []*unit) map[uint32]*callCounts {
	all := make(map[uint32]*callCounts)
	for i, u := range units {
		c.each(u, func(w int, cell workload.Cell) {
			n := c.works[cell.Work].Function
			f := all[n]
			if f == nil {
				f = &callCounts{in: make([]float64, len(units)), out: make([]float64, len(units)), byWindow: make([]float64, c.windows)}
				all[n] = f
			}
			calls, time := float64(cell.Calls), float64(cell.Exclusive)
			f.byWindow[w] += calls
			if w < x.first || w > x.last {
				f.out[i] += calls
			} else {
				f.in[i] += calls
				f.inTime, f.inCalls = f.inTime+time, f.inCalls+calls
			}
			if w < x.first {
				f.before += time
			}
		})
	}
	return all
}

// more reports whether a number of calls is greater than another by as much as between roles.
func more(calls, other float64) bool {
	return calls > sameCalls*other && math.Sqrt(calls)-math.Sqrt(other) > byChance
}

// sameBefore reports whether units did at least half of the work of an interval in the time before it as well.
func (x *longer) sameBefore(all map[uint32]*callCounts) bool {
	inside := float64(x.last - x.first + 1)
	before := 0.0 // number of windows with work
	for w := range x.first {
		if x.center[w] > 0 {
			before++
		}
	}
	var same, work float64
	for _, f := range all {
		same += min(f.before/max(1, before), f.inTime/inside)
		work += f.inTime / inside
	}
	return 2*same >= work
}

// extraOf makes a unit slow if it works longer because it makes more calls. It returns the interval, or nil.
func (c *comparison) extraOf(p *population, x *longer) *interval {
	own, others := x.count(c, []*unit{x.unit}), x.count(c, x.peers)
	if !x.sameBefore(others) {
		return nil
	}
	inside, n := float64(x.last-x.first+1), float64(len(x.peers))
	lost, functions := make([]float64, c.windows), make(map[uint32]functionTime)
	var gain, less float64
	for number, f := range own {
		o := others[number]
		if o == nil {
			o = &callCounts{in: make([]float64, 1), out: make([]float64, 1), byWindow: make([]float64, c.windows)}
		}
		usual := median(slices.Clone(o.in))
		time := f.inTime / max(1, f.inCalls) // time of a call
		if o.inCalls > 0 {
			time = min(time, o.inTime/o.inCalls)
		}
		rate, outside := (f.in[0]-usual)/inside, (f.out[0]-slices.Max(o.out))/max(1, float64(c.windows)-inside)
		switch {
		case more(f.in[0], slices.Max(o.in)) && outside <= outsideShare*rate:
			gain += (f.in[0] - usual) * time
			functions[number] = functionTime{calls: f.in[0], time: f.inTime, expected: f.inTime - (f.in[0]-usual)*time, peerCalls: usual}
			for w := range lost {
				lost[w] += (f.byWindow[w] - o.byWindow[w]/n) * time
			}
		case more(usual, f.in[0]):
			less += (usual - f.in[0]) * time
		}
	}
	for number, o := range others {
		if own[number] == nil {
			less += median(slices.Clone(o.in)) * o.inTime / max(1, o.inCalls)
		}
	}
	if gain -= less; gain <= 0 || 2*gain < x.beyond() {
		return nil
	}
	for w := range lost {
		lost[w] = max(0, lost[w]) * gain / (gain + less)
	}
	v := c.extraInterval(x, lost)
	v.functions, v.lostOwn = functions, gain
	useful := 0.0
	for w := v.first; w <= v.last; w++ {
		useful += max(0, x.useful[w])
	}
	v.level = math.Log(useful / max(useful/mostRatio, useful-gain))
	spread := max(leastSpread, x.spread())
	v.z = math.Log(1+x.beyond()/max(1, sum(x.center[x.first:x.last+1]))) / spread
	v.chance = studentTail(v.z, n-1)
	if v.level < p.least || v.z < leastZ {
		return nil
	}
	c.expose(x.unit, v, lost)
	return v
}

// spread returns how much peers differ while the unit works longer.
func (x *longer) spread() float64 {
	var logs []float64
	center := max(1, sum(x.center[x.first:x.last+1]))
	for _, o := range x.peers {
		logs = append(logs, math.Log(max(1, sum(o.work[x.first:x.last+1]))/center))
	}
	return spreadOf(logs)
}

// extraInterval returns the interval of extra work with the time lost in each window.
func (c *comparison) extraInterval(x *longer, lost []float64) *interval {
	v := &interval{
		pattern: provenance.Phase, first: x.first, last: x.last, from: x.First, to: x.Last, open: x.open, weak: len(x.peers) < enoughPeers,
		extra: true, peers: len(x.peers),
	}
	if v.open {
		v.pattern = provenance.Since
	}
	full := median(slices.Clone(lost[x.first : x.last+1]))
	for v.first > 0 && lost[v.first-1] >= outsideShare*full {
		v.first--
	}
	for !v.open && v.last < c.windows-1 && lost[v.last+1] >= outsideShare*full {
		v.last++
	}
	begin, end := c.bounds(v.first)
	v.from = end - trace.Ticks(min(1, lost[v.first]/full)*float64(end-begin))
	if !v.open {
		begin, end = c.bounds(v.last)
		v.to = begin + trace.Ticks(min(1, lost[v.last]/full)*float64(end-begin))
	}
	return v
}
