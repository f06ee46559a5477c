package query

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// choice tells which executions a selection chooses.
type choice struct {
	first, last         int // places between which they are, in order of entry; last is not one
	processes           []bool
	functions, kinds    []bool // nil: all
	issue               int32  // 0: any
	steps, took         Range
	anySteps, anyLength bool
	lost                int64
	only                [][]test // of each one must be passed
	without             []test   // of which none may be passed, here and in what it is held against
	chosen              []bool   // by place, when selected has looked; nil: none
}

// chooses returns what a selection chooses of the anomalies; nil if that cannot be told
// from memory.
func (x *Index) chooses(begin trace.Micros, q *Selection) *choice {
	f := q.Filter
	f.Normal, f.Withdrawn, f.Order, f.Limit, f.Offset = false, false, "", 0, 0 // are not looked at
	f.Function, f.One, f.Kinds, f.Host, f.Ranks, f.Steps, f.Since, f.Until, f.Took, f.Lost, f.Program = "", nil, nil, "", nil, nil, nil, nil, nil, 0, nil
	if x == nil || !reflect.ValueOf(f).IsZero() {
		return nil
	}
	f = q.Filter
	c := &choice{last: x.flagged.len(), functions: x.chosen(&f), processes: make([]bool, len(x.processes)), lost: int64(f.Lost), anySteps: f.Steps == nil, anyLength: f.Took == nil}
	if f.Since != nil {
		c.first = sort.Search(x.flagged.len(), func(i int) bool { return x.flagged.entry[i] >= int64(begin+*f.Since) })
	}
	if f.Until != nil {
		c.last = sort.Search(x.flagged.len(), func(i int) bool { return x.flagged.entry[i] > int64(begin+*f.Until) })
	}
	if f.Steps != nil {
		c.steps = *f.Steps
	}
	if f.Took != nil {
		c.took = *f.Took
	}
	if len(f.Kinds) > 0 {
		c.kinds = make([]bool, len(x.kinds))
		for i, kind := range x.kinds {
			c.kinds[i] = slices.Contains(f.Kinds, kind)
		}
	}
	host := outlier.Glob(cmp.Or(f.Host, "*"))
	for i, p := range x.processes {
		within := func(r Range) bool { return r.First <= int64(p.Rank) && int64(p.Rank) <= r.Last }
		c.processes[i] = (f.Program == nil || p.Program == *f.Program) && (len(f.Ranks) == 0 || slices.ContainsFunc(f.Ranks, within)) && (f.Host == "" || host.MatchString(x.hosts[i]))
	}
	if q.Issue != nil {
		x.onlyIssue(c, q)
	}
	if !x.narrow(c, q, begin) {
		return nil
	}
	return c
}

// onlyIssue leaves those of the issue, as far as that is stored.
func (x *Index) onlyIssue(c *choice, q *Selection) {
	functions := make([]bool, len(x.functions))
	for i, f := range x.functions {
		functions[i] = f.program == q.Issue.PID && x.names[i] == q.Issue.Func && (c.functions == nil || c.functions[i])
	}
	c.functions = functions
	if q.Member == nil {
		c.issue = int32(q.Issue.Number)
	}
}

// of reports whether an anomaly is chosen.
func (c *choice) of(all *columns, i int) bool {
	if !c.has(all, i) || c.leavesOut(all, i) {
		return false
	}
	for _, tests := range c.only {
		if !passes(tests, all, i) {
			return false
		}
	}
	return true
}

// leavesOut reports whether an execution is to be found nowhere.
func (c *choice) leavesOut(all *columns, i int) bool { return passes(c.without, all, i) }

func (c *choice) has(all *columns, i int) bool {
	return i >= c.first && i < c.last && c.processes[all.process[i]] && (c.functions == nil || c.functions[all.function[i]]) && (c.kinds == nil || c.kinds[all.kind[i]]) &&
		(c.issue == 0 || all.issue[i] == c.issue) && all.lost[i] >= c.lost &&
		(c.anySteps || c.steps.First <= int64(all.ioStep[i]) && int64(all.ioStep[i]) <= c.steps.Last) &&
		(c.anyLength || c.took.First <= all.exclusive[i] && all.exclusive[i] <= c.took.Last)
}

// drawing takes some of many executions, as explain_executions.sql does: those with the
// least lots.
type drawing struct {
	x     *Index
	limit int
	most  int16 // larger lots are not among the first
	drawn []drawn
}

type drawn struct {
	of  *columns
	at  int32
	lot int16
}

func (x *Index) draw(limit int) *drawing { return &drawing{x: x, limit: limit, most: lots} }

func (d *drawing) add(c *columns, i int) {
	lot := c.lot[i]
	if lot > d.most {
		return
	}
	d.drawn = append(d.drawn, drawn{c, int32(i), lot})
	if len(d.drawn) < 8*d.limit {
		return
	}
	var count [lots]int
	for _, e := range d.drawn {
		count[max(e.lot, 0)]++
	}
	for sum, lot := 0, 0; lot < lots; lot++ {
		if sum += count[lot]; sum >= d.limit {
			d.most = int16(lot)
			break
		}
	}
	d.drawn = slices.DeleteFunc(d.drawn, func(e drawn) bool { return e.lot > d.most })
}

// executions are those that were drawn, in order.
func (d *drawing) executions() []*sampled { return d.x.all(d.first()) }

// first are those that were drawn, in order.
func (d *drawing) first() []drawn {
	entry := func(e drawn) int64 { return e.of.entry[e.at] }
	slices.SortFunc(d.drawn, func(a, b drawn) int {
		if n := cmp.Or(cmp.Compare(a.lot, b.lot), cmp.Compare(entry(a), entry(b))); n != 0 {
			return n
		}
		return strings.Compare(d.x.event(a.of, int(a.at)), d.x.event(b.of, int(b.at)))
	})
	return d.drawn[:min(d.limit, len(d.drawn))]
}

func (x *Index) all(places []drawn) []*sampled {
	list := make([]*sampled, 0, len(places))
	for _, e := range places {
		list = append(list, x.sampled(e.of, int(e.at)))
	}
	return list
}

func (x *Index) sampled(c *columns, i int) *sampled {
	p, f := c.process[i], c.function[i]
	return &sampled{
		program: x.processes[p].Program, rank: x.processes[p].Rank, thread: x.threads[c.thread[i]], event: x.event(c, i), fn: int64(x.functions[f].fn), path: int64(c.path[i]),
		host: x.hosts[p], entry: trace.Micros(c.entry[i]), exit: trace.Micros(c.exit[i]), step: int64(c.ioStep[i]), onGPU: c.gpu[i], function: x.names[f], anomalous: c == &x.flagged,
		lost: trace.Micros(c.lost[i]), count: 1,
	}
}

// selected draws from a selection, and tells how many it has and what they lost.
func (x *Index) selected(c *choice, limit int) (list []*sampled, total int64, lost trace.Micros) {
	d, all := x.draw(limit), &x.flagged
	c.chosen = make([]bool, all.len())
	for i := c.first; i < c.last; i++ {
		if c.of(all, i) {
			c.chosen[i] = true
			total++
			lost += trace.Micros(all.lost[i])
			d.add(all, i)
		}
	}
	return d.executions(), total, lost
}

// others draws from the anomalies of functions that are not chosen, as selected saw them.
func (x *Index) others(c *choice, functions string, limit int) []*sampled {
	d, all, same := x.draw(limit), &x.flagged, x.listed(functions)
	for i := range all.len() {
		if all.lot[i] <= d.most && same[all.function[i]] && (c.chosen == nil || !c.chosen[i]) && !c.leavesOut(all, i) {
			d.add(all, i)
		}
	}
	return d.executions()
}

// usual draws from the typical executions of functions.
func (x *Index) usual(c *choice, functions string, limit int) []*sampled {
	d, all, same := x.draw(limit), &x.typical, x.listed(functions)
	for i := range all.len() {
		if all.lot[i] <= d.most && same[all.function[i]] && !c.leavesOut(all, i) {
			d.add(all, i)
		}
	}
	return d.executions()
}

// anyOf draws from all executions that were not withdrawn.
func (x *Index) anyOf(c *choice, limit int) []drawn {
	d := x.draw(limit)
	for _, all := range []*columns{&x.flagged, &x.typical} {
		for i := range all.len() {
			if all.lot[i] <= d.most && !c.leavesOut(all, i) {
				d.add(all, i)
			}
		}
	}
	return slices.Clone(d.first())
}

// listed tells which functions a list of program/fn names.
func (x *Index) listed(functions string) []bool {
	chosen := make([]bool, len(x.functions))
	names := make(map[string]bool)
	for name := range strings.SplitSeq(functions, ",") {
		names[name] = true
	}
	for i, f := range x.functions {
		chosen[i] = names[functionKey(int64(f.program), int64(f.fn))]
	}
	return chosen
}
