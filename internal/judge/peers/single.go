package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// Units are also compared by each function separately, because a function that is slow at one place may be a small part of its
// work. The functions with the greatest losses are compared: all, as long as there are at most seriesCells windows of units, and
// at least fewestSeries. A unit is slow in a function by the rules for its whole work. In addition, the probability that chance
// gives such a difference in any of the functions of any unit must be below weakChance. If others wait for the unit in functions
// whose names do not show that, it is sufficient that this probability is as low for one function of one unit that loses at least
// leastSaved of its time there.
const (
	seriesCells  = 1 << 20
	fewestSeries = 16
	minorShare   = 1e-4 // of the time of all units; findings that cost less are listed only on request
)

// functionRole is a role with the work of one function.
type functionRole struct {
	role
	function uint32
}

// compareFunctions finds units of a role that are slow in a single function, while the rest of their work is not.
func (c *comparison) compareFunctions(p *population, r *role) {
	parts, tests := c.functionRoles(r)
	worst, certain := make([]*unit, len(r.units)), make([]bool, len(r.units)) // parts with the greatest loss
	least := minorShare * timeOf(p.units)
	for _, part := range parts {
		c.rate(&part.role)
		for i, s := range part.units {
			s.slow = c.interval(p, &part.role, s, part.of[i])
			if s.slow == nil || s.slow.chance >= weakChance || s.slow.lostOwn < least || s.isDelayed() {
				continue
			}
			sure, old := s.slow.chance*tests < weakChance, worst[i]
			if !sure && s.slow.lostOwn < leastSaved*float64(s.slow.to-s.slow.from) {
				continue
			}
			if old == nil || sure && !certain[i] || sure == certain[i] && s.slow.lostOwn > old.slow.lostOwn {
				worst[i], certain[i] = s, sure
			}
		}
	}
	for i, u := range r.units {
		s := worst[i]
		if s == nil || u.slow != nil && !u.slow.isOnly(u, s) {
			continue
		}
		s.slow.functions = c.functionTimes(s)
		switch {
		case c.isCompensated(r, u, s, r.of[i]):
			c.reveal(r.units, i, s)
		case certain[i]:
			s.slow.chance *= tests
			c.expose(u, s.slow, s.beyond())
		}
	}
}

// timeOf returns the time of units, including waits.
func timeOf(units []*unit) (time float64) {
	for _, u := range units {
		time += sum(u.useful) + sum(u.wait)
	}
	return time
}

// isDelayed reports whether a unit that is slow in an interval loses at least half of the time in one window: there, a single call
// may have been delayed.
func (u *unit) isDelayed() bool {
	return 2*slices.Max(u.beyond()[u.slow.first:u.slow.last+1]) >= u.slow.lostOwn
}

// functionRoles returns the work of the functions with the greatest losses, and the number of all functions of all units. The units
// of each function have the order of the role.
func (c *comparison) functionRoles(r *role) (parts []*functionRole, tests float64) {
	n := uint32(0)
	for _, w := range c.works {
		n = max(n, w.Function+1)
	}
	own, most := make([]float64, n), make([]float64, n) // losses of a unit, and the greatest
	for _, u := range r.units {
		clear(own)
		c.each(u, func(w int, cell workload.Cell) {
			if mean := r.mean(w, cell); mean > 0 {
				own[c.works[cell.Work].Function] += float64(cell.Exclusive) - float64(cell.Calls)*mean
			}
		})
		for f, lost := range own {
			most[f] = max(most[f], lost)
		}
	}
	for f, lost := range most {
		if lost > 0 {
			parts = append(parts, &functionRole{role: role{totals: r.totals}, function: uint32(f)})
		}
	}
	tests = float64(len(parts) * len(r.units))
	slices.SortStableFunc(parts, func(a, b *functionRole) int { return cmp.Compare(most[b.function], most[a.function]) })
	parts = parts[:min(len(parts), max(fewestSeries, seriesCells/(len(r.units)*c.windows)))]
	byFunction := make([]*functionRole, n)
	for _, part := range parts {
		byFunction[part.function] = part
	}
	for i, u := range r.units {
		for _, part := range parts {
			part.units = append(part.units, c.part(u, part.function))
		}
		c.each(u, func(w int, cell workload.Cell) {
			part := byFunction[c.works[cell.Work].Function]
			if mean := r.mean(w, cell); mean > 0 && part != nil {
				s := part.units[i]
				s.time[w] += float64(cell.Exclusive)
				s.expected[w] += float64(cell.Calls) * mean
			}
		})
		for _, part := range parts {
			part.units[i].compare()
		}
	}
	return parts, tests
}

// part returns a unit for the work of one function of a unit.
func (c *comparison) part(u *unit, function uint32) *unit {
	all := make([]float64, 4*c.windows)
	of := func(i int) []float64 { return all[i*c.windows : (i+1)*c.windows : (i+1)*c.windows] }
	s := &unit{
		Lane: u.Lane, lanes: u.lanes, tid: u.tid, role: u.role, peers: u.peers, function: &function,
		time: of(0), expected: of(1), excess: of(2), raw: of(3),
	}
	for w := range s.raw {
		s.excess[w], s.raw[w] = math.NaN(), math.NaN()
	}
	return s
}

// isOnly reports whether a part of the work of a unit is all that is slow in an interval, although the unit has other work.
func (v *interval) isOnly(u, part *unit) bool {
	var time, expected, all float64
	for w := v.first; w <= v.last; w++ {
		time, expected, all = time+u.time[w]-part.time[w], expected+u.expected[w]-part.expected[w], all+u.expected[w]
	}
	return v.overlaps(part.slow) && expected >= smallPart*all && time < leastRatio*expected
}

// smallPart is the share of the work of a unit that does not show whether the rest is slow.
const smallPart = 0.1

// functionTimes returns the calls and times of a part of the work of a unit in its slow interval.
func (c *comparison) functionTimes(part *unit) map[uint32]functionTime {
	var f functionTime
	c.each(part, func(w int, cell workload.Cell) {
		if part.slow.includes(w) && c.works[cell.Work].Function == *part.function {
			f.calls, f.time = f.calls+float64(cell.Calls), f.time+float64(cell.Exclusive)
		}
	})
	f.expected = f.time - part.slow.lostOwn
	return map[uint32]functionTime{*part.function: f}
}

// beyond returns the time of a unit beyond that of equal work of its peers, by window.
func (u *unit) beyond() []float64 {
	lost := make([]float64, len(u.time))
	for w := range lost {
		lost[w] = u.time[w] - u.expected[w]
	}
	return lost
}

// chanceOf returns the probability that a healthy unit is as slow in an interval as a unit is, given how much the means of other
// units differ: those of other hosts, if there are enough.
func (g *group) chanceOf(units []*unit, u *unit, v *interval) float64 {
	var means, elsewhere []float64
	for _, o := range units {
		values := g.relative(o, v.first, v.last+1)
		if o == u || len(values) == 0 {
			continue
		}
		means = append(means, mean(values))
		if o.Host != u.Host {
			elsewhere = append(elsewhere, mean(values))
		}
	}
	if hasName(u.Host) && len(elsewhere) >= enoughPeers {
		means = elsewhere
	}
	n := float64(len(means))
	if n < 2 {
		return 1
	}
	return studentTail(v.level/max(leastSpread, standardDeviation(means)*math.Sqrt((n+1)/(n-1))), n-1)
}
