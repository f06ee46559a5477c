package peers

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// A rank or GPU keeps the keptFunctions functions with most time, each with at least leastTime of the time of its work. It
// keeps fewer if all units of a program together would have more than allFunctions, but at least fewestFunctions.
const (
	leastTime       = 0.01
	keptFunctions   = 10
	fewestFunctions = 4
	allFunctions    = 40_000
)

// tally sums up the work of a unit.
type tally struct {
	works   []functionTime // by work
	touched []uint32
	byName  map[uint32]functionTime
}

// add adds a cell with the mean time of such calls. A mean of 0 means that the cell cannot be compared and counts as usual.
func (t *tally) add(cell workload.Cell, mean float64) {
	f := &t.works[cell.Work]
	if f.calls == 0 {
		t.touched = append(t.touched, cell.Work)
	}
	calls, time := float64(cell.Calls), float64(cell.Exclusive)
	f.calls, f.time = f.calls+calls, f.time+time
	if mean > 0 {
		f.expected += calls * mean
	} else {
		f.expected += time
	}
}

// take returns the functions of the unit with most time, and resets the tally.
func (c *comparison) take(u *unit, t *tally, most int) []rankFunction {
	clear(t.byName)
	all := 0.0
	for _, work := range t.touched {
		w, n := t.works[work], c.works[work].Function
		f := t.byName[n]
		t.byName[n] = functionTime{calls: f.calls + w.calls, time: f.time + w.time, expected: f.expected + w.expected}
		t.works[work] = functionTime{}
		all += w.time
	}
	t.touched = t.touched[:0]
	list := make([]rankFunction, 0, len(t.byName))
	for n, f := range t.byName {
		if f.time > 0 && f.time >= leastTime*all {
			list = append(list, rankFunction{c.name(u.Program, n), f})
		}
	}
	slices.SortFunc(list, func(a, b rankFunction) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	return slices.Clone(list[:min(most, len(list))])
}

// rankFunction is a function of a unit. The expected time uses the mean of its role.
type rankFunction struct {
	name string
	functionTime
}

// tallies returns an empty tally for the units of a population and the number of functions that each unit keeps. It returns nil for
// threads, whose functions are those of their ranks.
func (c *comparison) tallies(p *population) (*tally, int) {
	if !p.ofRanks && !p.device {
		return nil, 0
	}
	t := &tally{works: make([]functionTime, len(c.works)), byName: make(map[uint32]functionTime)}
	return t, max(fewestFunctions, min(keptFunctions, allFunctions/max(1, len(p.units))))
}

// rankFunctions returns the functions of a unit, compared with those of its peers if it has any. The expected time is scaled
// like that of all its work.
func (u *unit) rankFunctions() []provenance.RankFunction {
	list := make([]provenance.RankFunction, 0, len(u.functions))
	for _, f := range u.functions {
		r := provenance.RankFunction{Func: f.name, Calls: int64(f.calls), Time: ticks(f.time)}
		if e := sum(u.expected); e > 0 && u.byMean > 0 {
			r.Peers = new(ticks(f.expected * e / u.byMean))
		}
		list = append(list, r)
	}
	return list
}
