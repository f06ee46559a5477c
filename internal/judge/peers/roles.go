package peers

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// Units have the same role if they call the same functions equally often relative to each other: units that started late, or
// get less to do because they are slow, have the role of the others. Functions with less than leastShare of the time do not
// matter, unless most have less. Numbers of calls differ if they are more than a factor of sameCalls apart, and by more than
// chance explains in most cases.
const (
	leastShare    = 0.01
	mostFunctions = 100
	sameCalls     = 1.25
	byChance      = 2 // difference of the roots of counts, whose standard deviation is at most 1/√2
)

// divide sets the roles of units.
func (c *comparison) divide(p *population) {
	if len(p.units) == 0 {
		return
	}
	functions := c.usualFunctions(p)
	calls := make([][]float64, len(functions)) // by function and unit
	for f := range calls {
		calls[f] = make([]float64, len(p.units))
	}
	byWork := make([][]float64, len(c.works)) // nil for functions that do not matter
	for i, w := range c.works {
		if f := functions[w.Function]; f != nil {
			byWork[i] = calls[f.index]
		}
	}
	for i, u := range p.units {
		c.each(u, func(_ int, cell workload.Cell) {
			if of := byWork[cell.Work]; of != nil {
				of[i] += float64(cell.Calls)
			}
		})
	}
	p.calls, p.times = calls, make([]float64, len(calls))
	for _, f := range functions {
		p.times[f.index] = f.time / max(1, sum(calls[f.index]))
	}
	scales := scalesOf(calls, functions, len(p.units))
	prints := make([][]byte, len(p.units))
	scaled := make([]float64, len(p.units))
	for _, of := range calls {
		for i := range of {
			scaled[i] = of[i] / scales[i]
		}
		for i, group := range cut(scaled, byChance) {
			prints[i] = binary.AppendUvarint(prints[i], uint64(group))
		}
	}
	for i, u := range p.units { // units that started late do not have less to do
		scales[i] /= max(1, float64(u.Last-u.First))
	}
	shares := cut(scales, 0)
	roles := make(map[string]int)
	sizes := make(map[int]int)
	for i, u := range p.units {
		role, ok := roles[string(prints[i])]
		if !ok {
			role = len(roles) + 1
			roles[string(prints[i])] = role
		}
		u.role, u.share, u.index = role, shares[i], i
		sizes[role]++
	}
	for _, u := range p.units {
		u.peers = sizes[u.role] - 1
	}
}

// usualFunction takes a considerable share of the time.
type usualFunction struct {
	index int
	time  float64
}

// usualFunctions returns the functions that take a considerable share of the time, and counts rounds.
func (c *comparison) usualFunctions(p *population) map[uint32]*usualFunction {
	functions := make(map[uint32]*usualFunction)
	byWork, blocks := make([]total, len(c.works)), make([]uint16, len(c.works))
	for i, u := range p.units {
		c.each(u, func(w int, cell workload.Cell) {
			byWork[cell.Work].add(i+1, cell)
			blocks[cell.Work] |= 1 << (w * mostBlocks / c.windows)
		})
	}
	p.rounds = rounds(byWork, blocks) / float64(c.windows)
	total := 0.0
	for i := range byWork {
		time := byWork[i].time
		if time == 0 {
			continue
		}
		f := functions[c.works[i].Function]
		if f == nil {
			f = new(usualFunction)
			functions[c.works[i].Function] = f
		}
		f.time += time
		total += time
	}
	numbers := slices.Collect(maps.Keys(functions))
	slices.SortFunc(numbers, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(functions[b].time, functions[a].time), cmp.Compare(a, b))
	})
	covered := 0.0
	for i, number := range numbers {
		f := functions[number]
		f.index = i
		if f.time < leastShare*total && covered >= total/2 || i >= mostFunctions {
			delete(functions, number)
		}
		covered += f.time
	}
	return functions
}

// each calls f for all work of a unit.
func (c *comparison) each(u *unit, f func(window int, cell workload.Cell)) {
	for _, l := range u.lanes {
		for i := range l.Windows {
			w := c.index(&l.Windows[i])
			for _, cell := range c.decode(&l.Windows[i]) {
				f(w, cell)
			}
		}
	}
}

// scalesOf returns how often units call functions relative to others: the median over functions, weighted by their time.
func scalesOf(calls [][]float64, functions map[uint32]*usualFunction, units int) []float64 {
	weights, means := make([]float64, len(calls)), make([]float64, len(calls))
	for _, f := range functions {
		weights[f.index] = f.time
	}
	for f, of := range calls {
		n := 0.0
		for _, v := range of {
			if v > 0 {
				means[f] += v
				n++
			}
		}
		means[f] /= max(1, n)
	}
	type entry struct{ ratio, weight float64 }
	scales := make([]float64, units)
	entries := make([]entry, 0, len(calls))
	for i := range scales {
		entries = entries[:0]
		total := 0.0
		for f, of := range calls {
			if of[i] > 0 {
				entries = append(entries, entry{of[i] / means[f], weights[f]})
				total += weights[f]
			}
		}
		slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.ratio, b.ratio), cmp.Compare(a.weight, b.weight)) })
		scales[i] = 1
		for _, e := range entries {
			scales[i] = e.ratio
			if total -= 2 * e.weight; total <= 0 {
				break
			}
		}
	}
	return scales
}

// cut groups values. It cuts the sorted values where neighbors are more than a factor of sameCalls apart and their roots
// differ by more than least. Zeros are a group of their own.
func cut(values []float64, least float64) (groups []int) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	groups = make([]int, len(values))
	group := 0
	for k, i := range order {
		if k > 0 {
			a, b := values[order[k-1]], values[i]
			if a == 0 && b > 0 || b > sameCalls*a && math.Sqrt(b)-math.Sqrt(a) > least {
				group++
			}
		}
		groups[i] = group
	}
	return groups
}

// roles returns the units of each role.
func (p *population) roles() [][]*unit {
	var roles [][]*unit
	for _, u := range p.units {
		for len(roles) < u.role {
			roles = append(roles, nil)
		}
		roles[u.role-1] = append(roles[u.role-1], u)
	}
	return roles
}
