package query

import (
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// test tells whether an execution has something.
type test func(c *columns, i int) bool

// passes reports whether an execution passes one of some tests.
func passes(tests []test, c *columns, i int) bool {
	for _, t := range tests {
		if t(c, i) {
			return true
		}
	}
	return false
}

// narrow adds the terms and the lasso of a selection to a choice; false if they cannot be
// told from memory. Those for which executions are looked at closely are left to others.
func (x *Index) narrow(c *choice, q *Selection, begin trace.Micros) bool {
	for i := range q.Without {
		t, ok := x.test(&q.Without[i], begin)
		if !ok {
			return false
		}
		if t != nil {
			c.without = append(c.without, t)
		}
	}
	ways := make(map[FieldKey][]test)
	for i := range q.Only {
		t, ok := x.test(&q.Only[i], begin)
		if !ok {
			return false
		}
		if t != nil {
			ways[q.Only[i].Field] = append(ways[q.Only[i].Field], t)
		}
	}
	for _, tests := range ways {
		c.only = append(c.only, tests)
	}
	if len(q.Lasso) > 0 {
		c.only = append(c.only, []test{encloses(q.Lasso, begin)})
	}
	return true
}

// test is a term as Term.condition tells it to a store; nil if executions have to be looked
// at closely, and false if it cannot be told.
func (x *Index) test(t *Term, begin trace.Micros) (_ test, ok bool) {
	within := func(n int64) bool { return int64(max(t.From, 0)) <= n && n <= int64(min(t.To, math.MaxInt32)) }
	switch t.Field.Kind {
	case FieldFunction:
		return func(c *columns, i int) bool { return x.names[c.function[i]] == t.Label }, true
	case FieldHost:
		if slices.Contains(x.hosts, "") || slices.Contains(x.hosts, "Unknown") {
			return nil, false // which it is only the store knows
		}
		return func(c *columns, i int) bool { return x.hosts[c.process[i]] == t.Label }, true
	case FieldDevice, FieldStream:
		return nil, false
	case FieldPath:
		paths := make(map[[2]int64]bool)
		for key := range x.paths {
			if strings.Join(x.pathNames(key[0], key[1]), " > ") == t.Label {
				paths[key] = true
			}
		}
		return func(c *columns, i int) bool {
			return paths[[2]int64{int64(x.processes[c.process[i]].Program), int64(c.path[i])}]
		}, true
	case FieldRank:
		return func(c *columns, i int) bool { return within(int64(x.processes[c.process[i]].Rank)) }, true
	case FieldThread:
		return func(c *columns, i int) bool { return !c.gpu[i] && within(x.threads[c.thread[i]]) }, true
	case FieldStep:
		return func(c *columns, i int) bool { return within(int64(c.ioStep[i])) }, true
	case FieldTime:
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		if !math.IsInf(t.From, 0) {
			from = int64(begin) + int64(math.Round(t.From*1e6))
		}
		if !math.IsInf(t.To, 0) {
			to = int64(begin) + int64(math.Round(t.To*1e6))
		}
		return func(c *columns, i int) bool { return from <= c.entry[i] && c.entry[i] < to }, true
	}
	return nil, true
}

// encloses tests whether executions are within a lasso, as inside tells it to a store.
func encloses(lasso []Vertex, begin trace.Micros) test {
	type edge struct{ low, high, at, slope float64 }
	height := func(us float64) float64 { return math.Log(max(1, us)) }
	low, high := lasso[0], lasso[0]
	var edges []edge
	for i, v := range lasso {
		low = Vertex{min(low.Seconds, v.Seconds), min(low.Micros, v.Micros)}
		high = Vertex{max(high.Seconds, v.Seconds), max(high.Micros, v.Micros)}
		w := lasso[(i+1)%len(lasso)]
		a, b := height(v.Micros), height(w.Micros)
		if a != b {
			slope := (w.Seconds - v.Seconds) / (b - a)
			edges = append(edges, edge{min(a, b), max(a, b), v.Seconds - slope*a, slope})
		}
	}
	first, last := int64(begin)+int64(math.Floor(low.Seconds*1e6)), int64(begin)+int64(math.Ceil(high.Seconds*1e6))
	shortest, longest := int64(math.Floor(low.Micros)), int64(math.Ceil(high.Micros))
	return func(c *columns, i int) bool {
		entry, took := c.entry[i], c.exclusive[i]
		if entry < first || entry > last || took < shortest || took > longest {
			return false
		}
		x, y, crossed := float64(entry-int64(begin))/1e6, height(float64(took)), false
		for _, e := range edges {
			if y >= e.low && y < e.high && x < e.at+e.slope*y {
				crossed = !crossed
			}
		}
		return crossed
	}
}

// grouped counts what a choice has of each value of a field, of which each that it returns
// is an example; false if that cannot be told from memory.
func (x *Index) grouped(c *choice, s *sampling, kind FieldKind) bool {
	all, width := &x.flagged, int64(s.binWidth())
	var key func(i int) int64
	switch kind {
	case FieldFunction:
		key = func(i int) int64 { return int64(all.function[i]) }
	case FieldHost:
		key = func(i int) int64 { return int64(all.process[i]) }
	case FieldRank:
		key = func(i int) int64 { return int64(x.processes[all.process[i]].Rank) }
	case FieldThread:
		key = func(i int) int64 {
			if all.gpu[i] {
				return -1
			}
			return int64(all.thread[i])
		}
	case FieldPath:
		key = func(i int) int64 { return int64(x.processes[all.process[i]].Program)<<32 | int64(all.path[i]) }
	case FieldStep:
		key = func(i int) int64 { return int64(all.ioStep[i]) }
	case FieldTime:
		key = func(i int) int64 { return int64(math.Floor(float64(all.entry[i]-int64(s.begin)) / float64(width))) }
	default:
		return false
	}
	groups := make(map[int64]*sampled)
	for i := c.first; i < c.last; i++ {
		if !c.of(all, i) {
			continue
		}
		k := key(i)
		g := groups[k]
		if g == nil {
			g = x.sampled(all, i)
			g.count, g.lost = 0, 0
			if kind == FieldTime {
				g.entry = s.begin + trace.Micros(k*width)
			}
			groups[k] = g
			s.selected = append(s.selected, g)
		}
		g.count++
		g.lost += trace.Micros(all.lost[i])
		s.total++
		s.lost += trace.Micros(all.lost[i])
	}
	return true
}
