// Package findings groups the anomalies of a run into findings, which people read.
package findings

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// parts is the number of parts of the run in which the anomalies of a finding are counted.
const parts = 20

// Slow executions are a burst if nearly all of them are in sequences of at least
// burstLength on a thread, with gaps of at most burstGap of the duration of the run, and
// no sequence lasts longer than burstSpan of it.
const (
	burstLength = 5
	burstShare  = 0.9
	burstGap    = 0.01
	burstSpan   = 0.1
)

// A finding with at least trendLeast anomalies has a trend: more or fewer if one half of
// the run has at least trendTimes as many as the other.
const (
	trendLeast = 5
	trendTimes = 2
)

// Result has the findings of a run and the links between its anomalies.
type Result struct {
	Findings []provenance.Finding // the worst first; victims with known culprits last
	Links    []provenance.Link    // of each anomaly, in the order of Run.Anomalies
}

// Conclude groups the anomalies of a run, with the links of Find, and lasting changes of
// functions into findings.
func Conclude(run *blame.Run, links []blame.Link, changes []summary.Change) *Result {
	c := &conclusion{run: run, links: links, member: make([]*group, len(run.Anomalies))}
	c.begin, c.end = span(run)
	c.collect()
	for i := range changes {
		c.all = append(c.all, c.changed(&changes[i]))
	}
	c.number()
	return c.findings()
}

// span returns the beginning and the end of the run.
func span(r *blame.Run) (begin, end trace.Micros) {
	begin, end = r.Begin, r.End
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		if r.Begin == 0 && (i == 0 || a.Entry < begin) {
			begin = a.Entry
		}
		end = max(end, a.Exit)
	}
	return begin, end
}

// conclusion is the state of Conclude.
type conclusion struct {
	run        *blame.Run
	links      []blame.Link
	begin, end trace.Micros
	all        []*group
	member     []*group // of each anomaly
}

// key has the common properties of the anomalies of a finding.
type key struct {
	program    trace.Program
	name, path string
	kind       provenance.AnomalyKind
	victim     bool
	cause      *group // of victims; nil if unknown
}

// group is an incomplete finding.
type group struct {
	provenance.Finding
	cause   *group
	members []int32
	lost    map[trace.Rank]trace.Micros
	hosts   map[string]bool
	waiting map[trace.RankKey]bool
}

// collect creates the groups: first of all anomalies except victims, then of victims,
// whose causes exist by then.
func (c *conclusion) collect() {
	order := c.run.Order()
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(c.run.Anomalies[x].Entry, c.run.Anomalies[y].Entry) })
	groups := make(map[key]*group)
	for _, victims := range []bool{false, true} {
		for _, i := range order {
			if l := &c.links[i]; (l.Role == provenance.Victim) == victims {
				c.add(groups, i, l)
			}
		}
	}
	for _, g := range c.all {
		c.sumUp(g)
	}
}

func (c *conclusion) add(groups map[key]*group, i int32, l *blame.Link) {
	a := &c.run.Anomalies[i]
	k := key{program: a.Program, name: a.Func, path: a.Path, kind: kindOf(a), victim: l.Role == provenance.Victim}
	if k.victim && l.Culprit >= 0 {
		k.cause = c.member[l.Culprit]
	}
	g := groups[k]
	if g == nil {
		g = newGroup(a)
		g.cause = k.cause
		groups[k] = g
		c.all = append(c.all, g)
	}
	if l.Role != "" {
		g.Role = l.Role
	}
	c.member[i] = g
	g.members = append(g.members, i)
	g.lost[a.Rank] += a.Lost
	g.hosts[a.Host] = true
	if k.cause != nil {
		k.cause.Waits++
		k.cause.WaitTime += a.Lost
		k.cause.waiting[trace.RankKey{Program: a.Program, Rank: a.Rank}] = true
	}
}

// kindOf returns the kind of the anomaly, or an estimate for old records without one.
func kindOf(a *blame.Anomaly) provenance.AnomalyKind {
	switch {
	case a.Kind != "":
		return a.Kind
	case a.OnDevice:
		return provenance.OnGPU
	case a.Wait == blame.Ranks || a.Wait == blame.Group || a.Wait == blame.Device:
		return provenance.CommWait
	}
	return provenance.Slow
}

func newGroup(a *blame.Anomaly) *group {
	return &group{
		Finding: provenance.Finding{PID: a.Program, Func: a.Func, Path: a.Path, Kind: kindOf(a), First: a.Entry, OverTime: make([]int64, parts)},
		lost:    make(map[trace.Rank]trace.Micros), hosts: make(map[string]bool), waiting: make(map[trace.RankKey]bool),
	}
}

// sumUp computes the totals of a group.
func (c *conclusion) sumUp(g *group) {
	worst := g.members[0]
	for _, i := range g.members {
		a := &c.run.Anomalies[i]
		g.Anomalies++
		g.LostTime += a.Lost
		g.Longest = max(g.Longest, a.Exit-a.Entry)
		g.Last = max(g.Last, a.Exit)
		g.OverTime[c.part(a.Entry)]++
		if a.Lost > c.run.Anomalies[worst].Lost {
			worst = i
		}
	}
	g.Example = c.run.Anomalies[worst].Event
	g.Ranks, g.Hosts = slices.Sorted(maps.Keys(g.lost)), slices.Sorted(maps.Keys(g.hosts))
	g.WorstRank = g.Ranks[0]
	for _, r := range g.Ranks {
		if g.lost[r] > g.lost[g.WorstRank] {
			g.WorstRank = r
		}
	}
	g.WorstTime = g.lost[g.WorstRank]
	g.WaitRanks = int64(len(g.waiting))
	g.Trend = trendOf(g.OverTime)
	if g.Kind == provenance.Slow && g.Role != provenance.Victim && c.isBurst(g) {
		g.Kind = provenance.Burst
	}
}

// part returns the part of the run that includes a time.
func (c *conclusion) part(at trace.Micros) int {
	if c.end <= c.begin {
		return 0
	}
	return min(parts-1, max(0, int(float64(at-c.begin)/float64(c.end-c.begin)*parts)))
}

func trendOf(counts []int64) provenance.Trend {
	var first, second int64
	for i, n := range counts {
		if i < len(counts)/2 {
			first += n
		} else {
			second += n
		}
	}
	switch {
	case first+second < trendLeast:
		return ""
	case second >= trendTimes*first:
		return provenance.More
	case first >= trendTimes*second:
		return provenance.Fewer
	}
	return provenance.Steady
}

// isBurst reports whether the members of a group, which are in order of entry, form
// bursts.
func (c *conclusion) isBurst(g *group) bool {
	type thread struct {
		rank   trace.Rank
		thread trace.Thread
	}
	type row struct {
		n           int
		first, last trace.Micros
	}
	span := float64(c.end - c.begin)
	in := 0
	end := func(r *row) {
		if r.n >= burstLength && float64(r.last-r.first) <= burstSpan*span {
			in += r.n
		}
	}
	rows := make(map[thread]*row)
	for _, i := range g.members {
		a := &c.run.Anomalies[i]
		t := thread{a.Rank, a.Thread}
		r := rows[t]
		if r == nil {
			r = new(row)
			rows[t] = r
		}
		if r.n > 0 && float64(a.Entry-r.last) > burstGap*span {
			end(r)
			r.n = 0
		}
		if r.n == 0 {
			r.first, r.last = a.Entry, a.Exit
		}
		r.n++
		r.last = max(r.last, a.Exit)
	}
	for _, r := range rows {
		end(r)
	}
	return float64(in) >= burstShare*float64(len(g.members))
}

// changed returns a group for a lasting change.
func (c *conclusion) changed(change *summary.Change) *group {
	g := newGroup(&blame.Anomaly{Program: change.Program, Func: change.Function, Kind: provenance.AnomalyKind(change.Kind), Entry: change.Since})
	g.Anomalies, g.Last, g.Before, g.After = int64(change.Calls), c.end, change.Before, change.After
	g.LostTime = trace.Micros(max(0, change.After-change.Before) * float64(change.Calls))
	g.Ranks, g.Hosts = []trace.Rank{}, []string{}
	return g
}

// number sorts the groups and numbers them.
func (c *conclusion) number() {
	slices.SortStableFunc(c.all, func(a, b *group) int {
		if (a.cause == nil) != (b.cause == nil) {
			if a.cause == nil {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.LostTime+b.WaitTime, a.LostTime+a.WaitTime), cmp.Compare(b.Anomalies, a.Anomalies),
			cmp.Compare(a.First, b.First), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Func, b.Func), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Kind, b.Kind))
	})
	for i, g := range c.all {
		g.Number = i + 1
	}
}

func (c *conclusion) findings() *Result {
	f := &Result{Findings: make([]provenance.Finding, 0, len(c.all)), Links: make([]provenance.Link, len(c.links))}
	for _, g := range c.all {
		if g.cause != nil {
			g.Cause = g.cause.Number
		}
		f.Findings = append(f.Findings, g.Finding)
	}
	waiting := make([]map[trace.RankKey]bool, len(c.links))
	for i := range c.links {
		l, a := &c.links[i], &c.run.Anomalies[i]
		out := &f.Links[i]
		out.PID, out.RID, out.EventID, out.Role, out.Hops = a.Program, a.Rank, a.Event, l.Role, l.Hops
		out.Finding = c.member[i].Number
		if l.Known {
			out.LateRank = &l.Late
		}
		if l.Culprit < 0 {
			continue
		}
		by := &c.run.Anomalies[l.Culprit]
		out.Culprit, out.CulpritPID = by.Event, by.Program
		if l.Role == provenance.Victim {
			if waiting[l.Culprit] == nil {
				waiting[l.Culprit] = make(map[trace.RankKey]bool)
			}
			waiting[l.Culprit][trace.RankKey{Program: a.Program, Rank: a.Rank}] = true
			of := &f.Links[l.Culprit]
			of.Waits++
			of.WaitTime += a.Lost
		}
	}
	for i, ranks := range waiting {
		f.Links[i].WaitRanks = int64(len(ranks))
	}
	return f
}
