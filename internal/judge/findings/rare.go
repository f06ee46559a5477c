package findings

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// isRare reports whether the function of the calls is rarely called.
func (g *group) isRare() bool { return g.all[g.members[0]].Kind == provenance.RarelyCalled }

// periodicCalls is the least number of rare calls on each rank that may be periodic: by chance one in a hundred sets of four is.
const periodicCalls = 4

// describeRare decides whether rare calls are by design, such as checkpoints: they are periodic, or all ranks make them at about
// the same times.
func (c *conclusion) describeRare(g *group) {
	if len(g.members) >= periodicCalls*len(g.Ranks) {
		g.Period = g.period(c.run.Unit)
	}
	g.Form, g.everywhere = provenance.Rare, c.atOnce(g)
	if g.Period != nil || g.everywhere {
		g.Severity = provenance.Note
	}
}

// atOnce reports whether all of several ranks, or all with the roles of these, made the same number of calls, and their first
// calls, their second calls, and so on, began within a part of the run.
func (c *conclusion) atOnce(g *group) bool {
	all := max(c.profile.ranks[g.PID], len(g.Ranks))
	if n := c.withRolesOf(g, all); n < 2 || len(g.Ranks) < n {
		return false
	}
	begins := make(map[trace.Rank][]trace.Ticks)
	for _, i := range g.members {
		begins[g.all[i].Rank] = append(begins[g.all[i].Rank], g.all[i].Entry)
	}
	first := begins[g.Ranks[0]]
	least, most := slices.Clone(first), slices.Clone(first)
	for _, times := range begins {
		if len(times) != len(first) {
			return false
		}
		for i, at := range times {
			least[i], most[i] = min(least[i], at), max(most[i], at)
		}
	}
	begin, end := c.spanOf(g.PID)
	for i := range first {
		if occupancy*(most[i]-least[i]) > end-begin {
			return false
		}
	}
	return true
}
