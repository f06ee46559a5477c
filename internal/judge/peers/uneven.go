package peers

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// unevenRole returns the role whose units do more than others, if that costs enough and none of them is slow; nil otherwise.
// At most half of the units may have that role.
func (c *comparison) unevenRole(p *population) *provenance.SlowPeer {
	type part struct{ role, share int }
	parts := make(map[part][]*unit)
	for _, u := range p.units {
		k := part{u.role, u.share}
		parts[k] = append(parts[k], u)
	}
	total := 0.0
	busy := func(u *unit) (b float64) {
		for _, v := range u.useful {
			b += max(0, v)
		}
		return b / max(1, float64(u.Last-u.First))
	}
	for _, u := range p.units {
		total += busy(u)
	}
	var worst *provenance.SlowPeer
	var most part
	for _, u := range p.units { // in order, each part once
		some := parts[part{u.role, u.share}]
		if u != some[0] || 2*len(some) > len(p.units) || slices.ContainsFunc(some, func(u *unit) bool { return u.slow != nil }) {
			continue
		}
		of := 0.0
		for _, u := range some {
			of += busy(u)
		}
		ratio := of / float64(len(some)) / max(1e-9, (total-of)/float64(len(p.units)-len(some)))
		if ratio < leastRatio {
			continue
		}
		saved, caused := c.whatIf(p, some, func(u *unit, w int) float64 { return u.useful[w] / ratio })
		s := c.note(p, some, provenance.ByRole, saved, caused)
		if s.Share >= leastSaved && (worst == nil || s.Saved > worst.Saved) {
			worst, most = s, part{u.role, u.share}
			worst.Ratio = ratio
		}
	}
	if worst != nil {
		worst.Functions = c.more(p, func(u *unit) bool { return part{u.role, u.share} == most })
	}
	return worst
}

// more returns the functions in which some units spend most time beyond that of others.
func (c *comparison) more(p *population, includes func(*unit) bool) []provenance.SlowFunction {
	type sums struct{ calls, time, othersCalls, others float64 }
	all := make(map[uint32]sums)
	some := 0
	for _, u := range p.units {
		own := includes(u)
		if own {
			some++
		}
		c.each(u, func(_ int, cell workload.Cell) {
			n := c.works[cell.Work].Function
			f := all[n]
			if own {
				f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
			} else {
				f.othersCalls, f.others = f.othersCalls+float64(cell.Calls), f.others+float64(cell.Exclusive)
			}
			all[n] = f
		})
	}
	list := []provenance.SlowFunction{}
	for n, f := range all {
		beyond := f.time - f.others*float64(some)/float64(len(p.units)-some)
		if f.calls > 0 && beyond > 0 {
			list = append(list, provenance.SlowFunction{
				Func: c.name(p.program, n), Calls: int64(f.calls), Mean: f.time / f.calls, Peers: f.others / max(1, f.othersCalls),
				Beyond: ticks(beyond),
			})
		}
	}
	return costliest(list)
}

// note returns a slow peer for which no place is to blame.
func (c *comparison) note(p *population, some []*unit, pattern provenance.Pattern, saved, caused float64) *provenance.SlowPeer {
	s := &provenance.SlowPeer{
		PID: p.program, Pattern: pattern, TID: some[0].tid, Role: some[0].role, Peers: len(p.units) - len(some), Hosts: []string{},
		Saved: ticks(saved), LostCaused: ticks(caused), Share: saved / max(1, float64(c.end-c.begin)), Confidence: 1,
		Functions: []provenance.SlowFunction{}, Windows: c.loadWindows(c.together(some), 0, c.windows),
	}
	for _, u := range some {
		s.Ranks = append(s.Ranks, u.Rank)
		if hasName(u.Host) {
			s.Hosts = append(s.Hosts, u.Host)
		}
	}
	slices.Sort(s.Ranks)
	slices.Sort(s.Hosts)
	s.Ranks, s.Hosts = slices.Compact(s.Ranks), slices.Compact(s.Hosts)
	return s
}

// fewestRoaming is the least number of units that must be slow one after another.
const fewestRoaming = 3

// roaming returns the units of which a different one is slow in most windows, if none of them is slow for half of the run and
// if that costs enough; nil otherwise. None of these units is to blame.
func (c *comparison) roaming(p *population) *provenance.SlowPeer {
	windows := make(map[*unit]int)
	top := make([]*unit, c.windows)
	all, hit := 0, 0
	var values []float64
	for w := range c.windows {
		values = values[:0]
		for _, u := range p.units {
			if x := u.excess[w]; !math.IsNaN(x) {
				values = append(values, x)
				if top[w] == nil || x > top[w].excess[w] {
					top[w] = u
				}
			}
		}
		if len(values) <= enoughPeers {
			top[w] = nil
			continue
		}
		all++
		if x := top[w].excess[w]; x < max(p.least, leastZ*max(leastSpread, deviation(values))) || top[w].slow != nil && c.isLong(top[w].slow) {
			top[w] = nil
			continue
		}
		hit++
		windows[top[w]]++
	}
	if all < c.fewest || float64(hit) < leastWindows*float64(all) || len(windows) < fewestRoaming {
		return nil
	}
	var some []*unit
	for _, u := range p.units {
		if n := windows[u]; n > 0 {
			some = append(some, u)
			if 2*n > hit {
				return nil
			}
		}
	}
	var time, expected float64
	for w, u := range top {
		if u != nil {
			time += u.time[w]
			expected += u.expected[w]
		}
	}
	saved, caused := c.whatIf(p, some, func(u *unit, w int) float64 {
		if top[w] == u {
			return u.useful[w] * math.Exp(-u.excess[w])
		}
		return u.useful[w]
	})
	s := c.note(p, some, provenance.Roaming, saved, caused)
	if s.Share < leastSaved {
		return nil
	}
	for _, u := range some {
		u.slow = nil
	}
	s.Ratio, s.LostOwn = time/max(1, expected), trace.Ticks(time-expected)
	return s
}

// isLong reports whether an interval is at least half of the run.
func (c *comparison) isLong(v *interval) bool { return 2*(v.to-v.from) >= c.end-c.begin }
