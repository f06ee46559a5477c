package analyzer

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// splitter decides which calls of a function, by call path and work, are judged on their own.
type splitter struct {
	least  uint64                      // calls that judge themselves
	byPath map[callpath.Hash][]*scoped // scratch: the calls of a path by work
	// Scratch: counts in coarse bins.
	whole, all, some, rest []uint64
}

// choose lets the calls of a path judge themselves if the path explains the spread of the
// function's times, and among them those that do the same work if that is usual and explains
// the spread of the path's times. Rare work is judged by usual work.
func (sp *splitter) choose(g *group) {
	if sp.byPath == nil {
		sp.byPath = make(map[callpath.Hash][]*scoped)
	}
	clear(sp.byPath)
	for s := range g.paths.Values() {
		sp.byPath[s.path.Path()] = append(sp.byPath[s.path.Path()], s)
	}
	first, last := coarseRange(&g.whole.model.Hist)
	sp.whole = coarseCounts(sp.whole, &g.whole.model.Hist, first, last)
	for path, works := range sp.byPath {
		p := works[0]
		if len(works) > 1 {
			p = g.join(path, works)
		}
		p.by = &g.whole
		sp.all = coarseCounts(sp.all, &p.model.Hist, first, last)
		if sp.explains(sp.all, sp.whole) {
			p.by = p
		}
		for _, s := range works {
			if s != p {
				s.by = p.by
				sp.some = coarseCounts(sp.some, &s.model.Hist, first, last)
				if float64(s.model.Count()) >= outlier.UsualShare*float64(p.model.Count()) && sp.explains(sp.some, sp.all) {
					s.by = s
				}
			}
			if s.by != s {
				s.judge, s.changed = nil, true
			}
		}
	}
}

// explains reports whether some of all times should be judged on their own: there are enough
// and two histograms, of these and of the rest, describe the times in fewer bits than one.
func (sp *splitter) explains(some, all []uint64) bool {
	sp.rest = sp.rest[:0]
	n, rest, bins := uint64(0), uint64(0), 0
	for i, k := range all {
		if k > 0 {
			bins++
		}
		n += some[i]
		rest += k - min(k, some[i])
		sp.rest = append(sp.rest, k-min(k, some[i]))
	}
	return n >= sp.least && rest > 0 && description(some, bins)+description(sp.rest, bins) < description(all, bins)
}

// coarseRange returns the first and the last coarse bin of a histogram.
func coarseRange(h *stats.Histogram) (first, last int) {
	first = -1
	for bin := range h.Bins() {
		if last = stats.CoarseBinOf(stats.BinLow(bin)); first < 0 {
			first = last
		}
	}
	return max(first, 0), last
}

// coarseCounts returns the counts of a histogram in coarse bins, in the memory of counts.
// Bins outside the range count as its ends.
func coarseCounts(counts []uint64, h *stats.Histogram, first, last int) []uint64 {
	counts = append(counts[:0], make([]uint64, last-first+1)...)
	for bin, n := range h.Bins() {
		counts[min(max(stats.CoarseBinOf(stats.BinLow(bin)), first), last)-first] += n
	}
	return counts
}

// description returns the number of bits that describe times by a histogram of so many
// bins: the ideal code for the counts, and half the logarithm of the number of times for
// each free parameter of that code, as in the Bayesian information criterion.
func description(counts []uint64, bins int) float64 {
	total, bits := 0.0, 0.0
	for _, n := range counts {
		if n > 0 {
			total += float64(n)
			bits -= float64(float64(n) * math.Log2(float64(n)))
		}
	}
	return bits + float64((total+float64(bins-1)/2)*math.Log2(max(total, 1)))
}
