package query

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// place is what function an execution is of; nil if it is not one that is known.
func (x *Index) place(r *provenance.Record) *Place {
	c, i := x.find(r.PID, r.EventID)
	if c == nil {
		return nil
	}
	return &Place{Function{Program: r.PID, FID: r.FID, Name: r.Func, fn: x.functions[c.function[i]].fn}, c.path[i]}
}

// twin is the id of the typical execution to compare one with, as twin.sql chooses it;
// empty: there is none.
func (x *Index) twin(r *provenance.Record, p *Place) (event string, samePath bool) {
	c, best := &x.typical, -1
	f := int32(slices.Index(x.functions, functionNumber{p.Function.Program, p.Function.fn}))
	unlike := func(i int) (list [6]int64) {
		if c.path[i] != p.path {
			list[0] = 1
		}
		rank := x.processes[c.process[i]].Rank
		if rank != r.RID {
			list[1] = 1
		}
		list[2] = max(c.entry[i]-int64(r.Entry), int64(r.Entry)-c.entry[i])
		list[3], list[4], list[5] = int64(rank), int64(c.step[i]), c.row[i]
		return list
	}
	var least [6]int64
	for i, function := range c.function {
		if function != f {
			continue
		}
		if u := unlike(i); best < 0 || slices.Compare(u[:], least[:]) < 0 {
			best, least = i, u
		}
	}
	if best < 0 {
		return "", false
	}
	return x.event(c, best), c.path[best] == p.path
}

// related is an anomaly; nil if it is not known.
func (x *Index) related(program trace.Program, event string) *Related {
	c, i := x.find(program, event)
	if c == nil {
		return nil
	}
	r := x.relatedAt(c, i)
	return &r
}

func (x *Index) relatedAt(c *columns, i int) Related {
	p := c.process[i]
	return Related{
		Process: x.processes[p], Event: x.event(c, i), Host: x.hosts[p], Function: x.names[c.function[i]], Entry: trace.Micros(c.entry[i]), Lost: trace.Micros(c.lost[i]),
	}
}

// neighbors are the ids of the anomalies of an issue, with the function and call path of one of them,
// that were entered just before and after it. known is false for one that is not in memory.
func (x *Index) neighbors(issue int, r *provenance.Record) (previous, next string, known bool) {
	c, own := x.find(r.PID, r.EventID)
	if c == nil || c != &x.flagged {
		return "", "", false
	}
	same := func(i int) bool {
		return c.issue[i] == int32(issue) && c.function[i] == c.function[own] && c.path[i] == c.path[own]
	}
	// Of those that were entered at the same time the order is that of ids.
	var together []string
	first, last := own, own
	for ; first > 0 && c.entry[first-1] == c.entry[own]; first-- {
	}
	for ; last+1 < c.len() && c.entry[last+1] == c.entry[own]; last++ {
	}
	for i := first; i <= last; i++ {
		if same(i) || i == own {
			together = append(together, x.event(c, i))
		}
	}
	slices.Sort(together)
	at := slices.Index(together, x.event(c, own))
	if at > 0 {
		previous = together[at-1]
	} else {
		previous = x.edge(c, first-1, -1, same)
	}
	if at+1 < len(together) {
		next = together[at+1]
	} else {
		next = x.edge(c, last+1, 1, same)
	}
	return previous, next, true
}

// edge is the id of the nearest execution in a direction: of several at its time the first
// that is met in order of ids. It is empty if there is none.
func (x *Index) edge(c *columns, from, by int, same func(i int) bool) (event string) {
	for i := from; i >= 0 && i < c.len(); i += by {
		if !same(i) {
			continue
		}
		event = x.event(c, i)
		for k := i + by; k >= 0 && k < c.len() && c.entry[k] == c.entry[i]; k += by {
			if id := x.event(c, k); same(k) && by*strings.Compare(id, event) < 0 {
				event = id
			}
		}
		return event
	}
	return ""
}

// points are those of a function that lost most, of an issue if that is not 0.
func (x *Index) points(f *Function, issue, limit int) []Point {
	c := &x.flagged
	chosen := x.ofFunction(c, f, func(i int) bool { return issue == 0 || c.issue[i] == int32(issue) })
	slices.SortFunc(chosen, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.lost[b], c.lost[a]), cmp.Compare(c.entry[a], c.entry[b]))
	})
	// The order of those that are equal otherwise is that of ids.
	equal := func(a, b int32) bool { return c.lost[a] == c.lost[b] && c.entry[a] == c.entry[b] }
	return x.pointsOf(c, x.byID(c, chosen, equal, limit))
}

// typicalPoints are some of all times, as points_typical.sql chooses them.
func (x *Index) typicalPoints(f *Function, limit int) []Point {
	c := &x.typical
	chosen := x.ofFunction(c, f, func(int) bool { return true })
	slices.SortFunc(chosen, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.lot[a], c.lot[b]), cmp.Compare(c.entry[a], c.entry[b]))
	})
	equal := func(a, b int32) bool { return c.lot[a] == c.lot[b] && c.entry[a] == c.entry[b] }
	return x.pointsOf(c, x.byID(c, chosen, equal, limit))
}

// ofFunction are the executions of a function that are wanted.
func (x *Index) ofFunction(c *columns, f *Function, wanted func(i int) bool) (chosen []int32) {
	number := int32(slices.Index(x.functions, functionNumber{f.Program, f.fn}))
	for i, function := range c.function {
		if function == number && wanted(i) {
			chosen = append(chosen, int32(i))
		}
	}
	return chosen
}

// lots is how many numbers there are in whose order executions are drawn: nothing else is in
// them.
const lots = 1009

// byID orders neighbors that are equal by their ids, and leaves the first.
func (x *Index) byID(c *columns, list []int32, equal func(a, b int32) bool, limit int) []int32 {
	for first := 0; first < min(len(list), limit); {
		last := first + 1
		for ; last < len(list) && equal(list[first], list[last]); last++ {
		}
		if last > first+1 {
			slices.SortFunc(list[first:last], func(a, b int32) int { return strings.Compare(x.event(c, int(a)), x.event(c, int(b))) })
		}
		first = last
	}
	return list[:min(len(list), limit)]
}

func (x *Index) pointsOf(c *columns, chosen []int32) (list []Point) {
	for _, i := range chosen {
		p := c.process[i]
		list = append(list, Point{
			Event: x.event(c, int(i)), Entry: trace.Micros(c.entry[i]), Exclusive: trace.Micros(c.exclusive[i]), Lost: trace.Micros(c.lost[i]),
			Rank: x.processes[p].Rank, Host: x.hosts[p], Status: x.statuses[c.status[i]],
		})
	}
	return list
}

// rankLosses are the ranks on which a function lost most.
func (x *Index) rankLosses(begin trace.Micros, f *Function, limit int) []RankLoss {
	c := &x.flagged
	at := make(map[int32]int)
	var list []RankLoss
	for _, i := range x.ofFunction(c, f, func(int) bool { return true }) {
		p := c.process[i]
		k, ok := at[p]
		first, last := float64(c.entry[i]-int64(begin))/1e6, float64(c.exit[i]-int64(begin))/1e6
		if !ok {
			k = len(list)
			at[p] = k
			list = append(list, RankLoss{Rank: x.processes[p].Rank, Host: x.hosts[p], First: first, Last: last})
		}
		l := &list[k]
		l.Anomalies++
		l.Lost += c.lost[i]
		l.Longest, l.First, l.Last = max(l.Longest, c.exclusive[i]), min(l.First, first), max(l.Last, last)
	}
	slices.SortFunc(list, func(a, b RankLoss) int { return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Rank, b.Rank)) })
	return list[:min(len(list), limit)]
}

// sums writes of all functions what function_sums.sql reads.
func (x *Index) sums() string {
	type sum struct {
		anomalies, lost, exclusive int64
		onGPU                      bool
	}
	all := make([]sum, len(x.functions))
	for _, c := range []*columns{&x.flagged, &x.typical, &x.withdrawn} {
		for i, f := range c.function {
			s := &all[f]
			s.onGPU = s.onGPU || c.gpu[i]
			if c == &x.flagged {
				s.anomalies++
				s.lost += c.lost[i]
				s.exclusive += c.exclusive[i]
			}
		}
	}
	var b []byte
	for i, s := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(x.functions[i].program), 10)
		for _, n := range []int64{int64(x.functions[i].fn), s.anomalies, s.lost, s.exclusive} {
			b = strconv.AppendInt(append(b, ':'), n, 10)
		}
		b = strconv.AppendBool(append(b, ':'), s.onGPU)
	}
	return string(b)
}

// victims are who waited because of a culprit: those that lost most. known is false for
// one that is not in memory.
func (x *Index) victims(program trace.Program, culprit string, limit int) (list []Related, known bool) {
	c, own := x.find(program, culprit)
	if c == nil || c != &x.flagged {
		return nil, false
	}
	var places []int
	for i, of := range c.culprit {
		if int(of) == own+1 {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		p, q := x.processes[c.process[a]], x.processes[c.process[b]]
		return cmp.Or(cmp.Compare(c.lost[b], c.lost[a]), cmp.Compare(p.Program, q.Program), cmp.Compare(p.Rank, q.Rank), cmp.Compare(c.step[a], c.step[b]), cmp.Compare(c.row[a], c.row[b]))
	})
	for _, i := range places[:min(len(places), limit)] {
		list = append(list, x.relatedAt(c, i))
	}
	return list, true
}

// ways are the call paths to a function, as func_ways.sql lists them.
func (x *Index) ways(f *Function, limit int) []Way {
	type way struct {
		path    int32
		n, lost int64
	}
	at := make(map[int32]int)
	var all []way
	for _, c := range []*columns{&x.flagged, &x.typical, &x.withdrawn} {
		for _, i := range x.ofFunction(c, f, func(int) bool { return true }) {
			k, ok := at[c.path[i]]
			if !ok {
				k = len(all)
				at[c.path[i]] = k
				all = append(all, way{path: c.path[i]})
			}
			if c == &x.flagged {
				all[k].n++
				all[k].lost += c.lost[i]
			}
		}
	}
	slices.SortFunc(all, func(a, b way) int {
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(b.n, a.n), cmp.Compare(a.path, b.path))
	})
	var list []Way
	for _, w := range all[:min(len(all), limit)] {
		list = append(list, Way{Program: f.Program, Path: x.pathNames(int64(f.Program), int64(w.path)), N: w.n, Lost: w.lost})
	}
	return list
}

// twinOf is the twin of an anomaly by its id; known is false for what is no anomaly in
// memory, or where programs have the same ids.
func (x *Index) twinOf(id string, p *trace.Program) (place *Place, program trace.Program, twin string, samePath, known bool) {
	if x == nil {
		return nil, 0, "", false, false
	}
	if p == nil {
		for _, o := range x.processes {
			if o.Program != x.processes[0].Program {
				return nil, 0, "", false, false
			}
		}
		if len(x.processes) == 0 {
			return nil, 0, "", false, false
		}
		p = &x.processes[0].Program
	}
	c, i := x.find(*p, id)
	if c == nil {
		return nil, 0, "", false, false
	}
	f := x.functions[c.function[i]]
	r := &provenance.Record{PID: *p, EventID: id, RID: x.processes[c.process[i]].Rank, Entry: trace.Micros(c.entry[i])}
	place = &Place{Function{Program: *p, Name: x.names[c.function[i]], fn: f.fn}, c.path[i]}
	twin, samePath = x.twin(r, place)
	return place, *p, twin, samePath, true
}

// maxAmong is how many of the first of an order are looked for in memory.
const maxAmong = 20_000

// among adds a condition to others that choose executions: one that those pass which come
// first in the order, as many as are asked for, and few besides. A store has little to sort then.
func (x *Index) among(c *conditions, begin trace.Micros, f *Filter) {
	most := f.Offset + f.Limit
	if x == nil || f.Normal || f.Withdrawn || most <= 0 || most > maxAmong {
		return
	}
	of := x.flagged.lost
	switch {
	case f.Order == "time":
		of = x.flagged.entry
	case f.Order == "severity" && !x.unlike:
		of = x.flagged.exclusive
	case f.Order != "lost":
		return
	}
	chosen := x.chooses(begin, &Selection{Filter: *f})
	if chosen == nil {
		return
	}
	wanted := func(i int) bool { return chosen.of(&x.flagged, i) }
	if f.Order == "time" { // in which they are
		for i := chosen.first; i < chosen.last; i++ {
			if wanted(i) {
				most--
			}
			if most == 0 {
				c.add("entry <= ?", of[i])
				return
			}
		}
		return
	}
	switch least, ok := largest(of, most, wanted); {
	case ok && f.Order == "lost":
		c.add("lost_time >= ?", least)
	case ok:
		c.add("outlier_severity >= ?", float64(least))
	}
}

// largest is the least of so many of the largest values among those that are wanted;
// not ok if there are fewer.
func largest(values []int64, most int, wanted func(i int) bool) (least int64, ok bool) {
	var list []int64
	least = math.MinInt64
	cut := func() {
		slices.Sort(list)
		list = append(list[:0], list[len(list)-most:]...)
		least = list[0]
	}
	for i, v := range values {
		if v > least && wanted(i) {
			if list = append(list, v); len(list) == 4*most+1000 {
				cut()
			}
		}
	}
	if len(list) < most {
		return 0, false
	}
	cut()
	return least, true
}
