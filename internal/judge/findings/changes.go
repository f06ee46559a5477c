package findings

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// addChanges adds a group for each change that neither a slow peer, anomalies nor interference explain. Temporary changes at the same
// time have one group.
func (c *conclusion) addChanges(changes []summary.Change) {
	var waits, others, temporary []*group
	for i := range changes {
		g := c.newChange(&changes[i])
		switch {
		case c.peerExplains(g) || g.Form == provenance.Temporary && (c.anomaliesExplain(g) || c.interferenceExplains(g)):
		case c.waits(g.PID, g.Func) && g.Severity == provenance.Alarm:
			waits = append(waits, g)
		case g.Form == provenance.Temporary:
			temporary = append(temporary, g)
		default:
			others = append(others, g)
		}
	}
	c.excuseByWork(others)
	others = append(others, c.joinTemporary(temporary)...)
	for _, g := range waits {
		g.cause = c.causeOf(g, others)
		switch {
		case g.cause != nil:
			g.Role = provenance.Victim
		case g.Form == provenance.Temporary && c.waitsForRanks(g.Func):
			g.Severity = provenance.Note // the late ranks did nothing unusual
		}
	}
	c.all = slices.Concat(c.all, others, waits)
}

// newChange returns a group for a change.
func (c *conclusion) newChange(change *summary.Change) *group {
	k := key{kind: provenance.LastingChange, program: change.Program, name: change.Function}
	g := c.newGroup(&k, nil)
	c.all = c.all[:len(c.all)-1]
	g.Form, g.Calls, g.OfCalls = provenance.Form(change.Kind), int64(change.Calls), c.profile.calls(change.Program, "", change.Function)
	g.First, g.Last, g.Expected, g.Actual = max(change.Since, c.begin), c.end, change.Before, change.After
	if change.Until > 0 {
		g.Last = min(change.Until, c.end)
	}
	g.LostOwn = trace.Ticks(change.Lost)
	g.Ranks, g.Hosts, g.Examples = []trace.Rank{}, []string{}, []string{}
	g.start = change.Until == 0 && g.Calls < g.OfCalls && startCalls*float64(g.OfCalls-g.Calls) < float64(g.OfCalls)
	if change.After <= change.Before || change.ByWork() || change.Unrecorded != "" || g.start {
		g.Severity = provenance.Note
	}
	g.unrecorded = change.Unrecorded
	if change.ByWork() {
		g.madeCalls = [2]float64{change.MadeBefore, change.MadeAfter}
	}
	c.complete(g)
	return g
}

// excuseByWork turns lasting changes into notes if they begin when the work of another function changes. If that is a drift, they may
// also begin later.
func (c *conclusion) excuseByWork(changes []*group) {
	margin := (c.end - c.begin) / occupancy
	for _, g := range changes {
		if g.Severity == provenance.Note {
			continue
		}
		i := slices.IndexFunc(changes, func(x *group) bool {
			return x.PID == g.PID && x.madeCalls[1] > 0 && x.First-margin <= g.First && (g.First <= x.First+margin || x.Form == provenance.Drift)
		})
		if i >= 0 {
			g.Severity, g.byWorkOf = provenance.Note, changes[i].Func
		}
	}
}

// anomaliesExplain reports whether the anomalies of a function during a change lost at least half as much.
func (c *conclusion) anomaliesExplain(change *group) bool {
	var lost trace.Ticks
	for i := range c.run.Anomalies {
		a := &c.run.Anomalies[i]
		if a.Program == change.PID && a.Func == change.Func && a.Entry < change.Last && change.First < a.Exit {
			lost += a.Lost
		}
	}
	return 2*lost >= change.LostOwn
}

// interferenceExplains reports whether delays from outside, if they hit a function as often as those in which they can be seen, explain
// at least half of the time that it lost during a change. They are part of interference already, which includes hidden delays.
func (c *conclusion) interferenceExplains(change *group) bool {
	if c.comparison.Work == nil {
		return false
	}
	times := c.workDuring(change)
	for _, g := range c.all {
		if g.Kind != provenance.Interference || g.PID != change.PID {
			continue
		}
		length := bits.Len64(uint64(g.Actual))
		shows := func(k pathKey) bool {
			u, ok := c.profile.paths[k]
			return ok && !u.waits && u.calls > 0 && u.function != change.Func && c.shows(length, u)
		}
		var own, visible, lost trace.Ticks
		for k, time := range times {
			if c.profile.paths[k].function == change.Func {
				own += time
			} else if shows(k) {
				visible += time
			}
		}
		for _, i := range g.members {
			if a := &g.all[i]; a.Entry < change.Last && change.First < a.Exit && shows(c.pathOf(a)) {
				lost += a.Lost
			}
		}
		if visible > 0 && 2*float64(lost)*float64(own) >= float64(change.LostOwn)*float64(visible) {
			return true
		}
	}
	return false
}

// workDuring returns the times of the call paths of a program in the windows of the comparison that overlap a change.
func (c *conclusion) workDuring(change *group) map[pathKey]trace.Ticks {
	work, all := c.comparison.Work, make(map[pathKey]trace.Ticks)
	for k, context := range c.profile.contexts {
		if k.program != change.PID {
			continue
		}
		context.Path = context.Path.Path()
		for w, time := range work.Of[context] {
			begin := work.Begin + work.Width*trace.Ticks(w)
			if begin < change.Last && change.First < begin+work.Width {
				all[pathKey{k.program, c.names.stable(k.path)}] += time
			}
		}
	}
	return all
}

// joinTemporary makes temporary changes part of the costliest one if each has at least half of its time in common with the other.
func (c *conclusion) joinTemporary(changes []*group) []*group {
	slices.SortStableFunc(changes, func(a, b *group) int { return cmp.Compare(b.LostOwn, a.LostOwn) })
	var all []*group
	for _, g := range changes {
		i := slices.IndexFunc(all, func(x *group) bool {
			common := min(x.Last, g.Last) - max(x.First, g.First)
			return x.PID == g.PID && x.Severity == g.Severity && 2*common >= max(x.Last-x.First, g.Last-g.First)
		})
		if i < 0 {
			all = append(all, g)
			continue
		}
		all[i].others = append(all[i].others, g)
	}
	for _, g := range all {
		for _, x := range g.others {
			g.Calls, g.OfCalls, g.LostOwn = g.Calls+x.Calls, g.OfCalls+x.OfCalls, g.LostOwn+x.LostOwn
		}
		c.complete(g)
	}
	return all
}

// causeOf returns the cause of an increase of waits: the costliest slow peer, or function that computes longer, that began no later,
// lasts at least as long, and lost at least half as much on a rank as a rank waited; nil if there is none.
func (c *conclusion) causeOf(waits *group, changes []*group) (cause *group) {
	ranks := trace.Ticks(max(1, c.profile.ranks[waits.PID]))
	margin := (c.end - c.begin) / occupancy
	for _, g := range slices.Concat(c.all, changes) {
		lost := g.WorstTime
		if g.IsChange() {
			lost = g.LostOwn / ranks
		}
		if (g.IsChange() || g.peer != nil && g.peer.blames()) && g.PID == waits.PID && g.Severity == provenance.Alarm &&
			g.First <= waits.First+margin && g.Last >= waits.Last-margin && 2*lost >= waits.LostOwn/ranks &&
			(cause == nil || g.LostOwn > cause.LostOwn) {
			cause = g
		}
	}
	return cause
}
