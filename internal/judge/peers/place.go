package peers

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Place is a place at which calls show that ranks of a program, or their GPUs, are slow. Times are seconds since the start of
// the run.
type Place struct {
	Program  trace.Program
	Ranks    []trace.Rank
	Device   bool
	From, To float64
	Open     bool // until the end of the run
}

// Judge returns the slow peer at a place, and its useful time between From and To, by the loads of a comparison: what the
// place took beyond the equal work of its peers, and what that cost. It returns false if the loads of the place are unknown.
func Judge(all *provenance.Peers, at *Place) (s provenance.SlowPeer, useful trace.Ticks, ok bool) {
	c, p := reconstruct(all, at)
	var some []*unit
	for _, u := range p.units {
		if slices.Contains(at.Ranks, u.Rank) && c.hypothesize(u, at) {
			some = append(some, u)
		}
	}
	if len(some) == 0 {
		return s, 0, false
	}
	s = c.slowPeer(p, some)
	for _, u := range some {
		for w := u.slow.first; w <= u.slow.last; w++ {
			from, to := c.bounds(w)
			part := float64(min(to, u.slow.to)-max(from, u.slow.from)) / max(1, float64(to-from))
			useful += ticks(max(0, u.useful[w]) * max(0, part))
		}
	}
	return s, useful, true
}

// Add adds slow peers to a comparison.
func Add(all *provenance.Peers, slow ...provenance.SlowPeer) {
	for i := range slow {
		mark(all.Loads, &slow[i])
	}
	all.Slow = append(all.Slow, slow...)
	slices.SortStableFunc(all.Slow, compareSlow)
}

// reconstruct returns the population of a place from loads. Times are since the start of the run.
func reconstruct(all *provenance.Peers, at *Place) (*comparison, *population) {
	c := &comparison{tick: all.Unit, load: workload.New()} // loads have no counters
	p := &population{program: at.Program, device: at.Device, ofRanks: !at.Device}
	includes := func(l *provenance.RankLoad) bool {
		return l.PID == at.Program && (l.Device && at.Device || l.TID == provenance.AllThreads)
	}
	last := 0.0
	windows := make(map[float64]int) // by start
	for i := range all.Loads {
		if l := &all.Loads[i]; includes(l) {
			for _, w := range l.Windows {
				windows[w.From] = 0
				last = max(last, w.To)
			}
		}
	}
	starts := make([]float64, 0, len(windows))
	for from := range windows {
		starts = append(starts, from)
	}
	slices.Sort(starts)
	c.windows, c.end = len(starts), c.tick.FromSeconds(last)
	for w, from := range starts {
		windows[from] = w
		c.edges = append(c.edges, c.tick.FromSeconds(from))
	}
	c.edges = append(c.edges, c.end)
	for i := range all.Loads {
		l := &all.Loads[i]
		if !includes(l) || len(l.Windows) == 0 {
			continue
		}
		u := c.reconstructUnit(l, windows)
		if l.Device == at.Device {
			p.units = append(p.units, u)
		}
		if !l.Device {
			p.waiting = append(p.waiting, u)
		}
	}
	return c, p
}

// reconstructUnit returns the unit of a load.
func (c *comparison) reconstructUnit(l *provenance.RankLoad, windows map[float64]int) *unit {
	lane := &workload.Lane{Host: l.Host, Device: l.Device}
	lane.Program, lane.Rank = l.PID, l.RID
	lane.First, lane.Last = c.tick.FromSeconds(l.Windows[0].From), c.tick.FromSeconds(l.Windows[len(l.Windows)-1].To)
	u := c.newUnit(lane, l.TID)
	u.role, u.peers = l.Role, l.Peers
	for w := range u.useful {
		u.useful[w] = -1
	}
	for i := range l.Windows {
		from := &l.Windows[i]
		w := windows[from.From]
		u.useful[w], u.wait[w] = float64(from.Useful), float64(from.Wait)
		u.sync[w] = u.wait[w] * float64(l.Sync) / float64(max(1, l.Wait)) // distributed as in the run
		if from.Ratio != nil && *from.Ratio > 0 {
			u.excess[w] = math.Log(*from.Ratio)
			u.time[w], u.expected[w] = u.useful[w], u.useful[w] / *from.Ratio
		}
	}
	return u
}

// hypothesize makes a unit slow at the times of a place. It returns false if the unit was not present.
func (c *comparison) hypothesize(u *unit, at *Place) bool {
	v := &interval{pattern: provenance.Phase, first: -1, from: c.tick.FromSeconds(at.From), to: c.tick.FromSeconds(at.To)}
	v.weak = u.peers < enoughPeers
	if v.open = at.Open; v.open {
		v.pattern = provenance.Since
	}
	var time, expected float64
	for w := range c.windows {
		if from, to := c.bounds(w); from >= v.to || to <= v.from || u.useful[w] < 0 {
			continue
		}
		if v.first < 0 {
			v.first = w
		}
		v.last = w
		time, expected = time+u.time[w], expected+u.expected[w]
	}
	if v.first < 0 {
		return false
	}
	if v.lostOwn = time - expected; expected > 0 {
		v.level = math.Log(time / expected)
	}
	u.slow = v
	return true
}
