package analyzer

import (
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// splitter decides which calls of a function, by call path and work, are judged separately.
type splitter struct {
	least  uint64                      // least number of calls that judge themselves
	byPath map[callpath.Hash][]*scoped // calls of a path by work; scratch
	// Times of the function, of a path and of some work on that path; scratch.
	whole, all, some outlier.CoarseTimes
}

// choose makes the calls of a path judge themselves if the path explains the spread of the function's times, and among them
// those that do the same work if that is usual and explains the spread of the path's times. Calls with rare work are judged
// by those with usual work.
func (sp *splitter) choose(g *group) {
	if sp.byPath == nil {
		sp.byPath = make(map[callpath.Hash][]*scoped)
	}
	clear(sp.byPath)
	for s := range g.paths.Values() {
		sp.byPath[s.path.Path()] = append(sp.byPath[s.path.Path()], s)
	}
	sp.whole.Count(&g.allCalls.model.Hist)
	for path, works := range sp.byPath {
		p := works[0]
		if len(works) > 1 {
			p = g.join(path, works)
		}
		p.by = &g.allCalls
		sp.all.CountPart(&p.model.Hist, &sp.whole)
		if sp.all.Explain(&sp.whole, sp.least) {
			p.by = p
		}
		anyWork := p.by == &g.allCalls && g.allCalls.judge.UsuallyMakesMore(&p.model)
		for _, s := range works {
			s.anyWork = anyWork
			if s != p {
				s.by = p.by
				sp.some.CountPart(&s.model.Hist, &sp.all)
				usual := float64(s.model.Count()) >= outlier.UsualShare*float64(p.model.Count())
				if usual && sp.some.Explain(&sp.all, sp.least) {
					s.by = s
				}
			}
			if s.by != s {
				s.judge, s.changed = nil, true
			}
		}
	}
}
