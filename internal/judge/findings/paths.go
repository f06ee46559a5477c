package findings

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// mergePaths merges groups of the same kind and function on several call paths if they are alike: the medians of their usual
// times and of their lost times are within a factor of likeTimes. Waits are always alike, because they depend on others, if both or
// neither made others wait.
func (c *conclusion) mergePaths() {
	type function struct {
		kind    provenance.FindingKind
		program trace.Program
		name    string
	}
	groups := make(map[function][]*group)
	for _, g := range c.all {
		if g.Path != "" && !g.placed && g.cause == nil {
			k := function{g.Kind, g.PID, c.names.stable(g.Func)}
			groups[k] = append(groups[k], g)
		}
	}
	into := make(map[*group]*group)
	for _, all := range groups {
		slices.SortFunc(all, func(a, b *group) int {
			return cmp.Or(cmp.Compare(len(b.members), len(a.members)), cmp.Compare(a.Path, b.Path))
		})
		for i, g := range all {
			for _, o := range all[i+1:] {
				if into[g] == nil && into[o] == nil && g.isLike(o) {
					into[o] = g
				}
			}
		}
	}
	for o, g := range into {
		g.merge(o)
	}
	for _, g := range into {
		slices.SortFunc(g.members, func(x, y int32) int {
			return cmp.Or(cmp.Compare(g.all[x].Entry, g.all[y].Entry), cmp.Compare(g.all[x].Exit, g.all[y].Exit),
				cmp.Compare(g.all[x].Rank, g.all[y].Rank), cmp.Compare(g.all[x].Event, g.all[y].Event))
		})
	}
	c.all = slices.DeleteFunc(c.all, func(g *group) bool { return into[g] != nil })
	for _, g := range c.all {
		if o := into[g.cause]; o != nil {
			g.cause = o
		}
	}
	for i, g := range c.member {
		if o := into[g]; o != nil {
			c.member[i] = o
		}
	}
}

// merge adds the members of a group on another path and the waits that they caused.
func (g *group) merge(o *group) {
	g.Path = ""
	g.members = append(g.members, o.members...)
	g.Waits += o.Waits
	g.LostCaused += o.LostCaused
	maps.Copy(g.waiting, o.waiting)
	if o.Role == provenance.Culprit {
		g.Role = o.Role
	}
}

// isLike reports whether two groups of a function on different call paths are alike.
func (g *group) isLike(o *group) bool {
	switch {
	case g.Path == o.Path, g.isUnknownWait() != o.isUnknownWait():
		return false
	case g.Kind == provenance.Waiting:
		return true
	}
	usual, lost := g.times()
	usualOther, lostOther := o.times()
	alike := func(a, b float64) bool { return max(a, b) <= likeTimes*min(a, b) }
	return alike(usual, usualOther) && alike(lost, lostOther)
}

// times returns the medians of the usual and of the lost times, at least one tick each.
func (g *group) times() (usual, lost float64) {
	var u, l []float64
	for _, i := range g.members {
		a := &g.all[i]
		u, l = append(u, float64(judgedTime(a)-a.Lost)), append(l, float64(a.Lost))
	}
	return max(1, quantile(u, 0.5)), max(1, quantile(l, 0.5))
}
