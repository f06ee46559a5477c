package analyzer

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// splitter decides which call paths of a function are judged on their own.
type splitter struct {
	whole, path, rest []uint64 // scratch: counts in coarse bins
}

// choose lets a path judge its own calls if it has at least least of them and the path
// explains the spread of the function's times: two histograms, of these calls and of all
// others, describe the times in fewer bits than one histogram of all.
func (sp *splitter) choose(g *group, least uint64) {
	all := &g.whole.model.Hist
	first, last := coarseRange(all)
	sp.whole = coarseCounts(sp.whole, all, first, last)
	used := 0
	for _, n := range sp.whole {
		if n > 0 {
			used++
		}
	}
	together := description(sp.whole, used)
	for s := range g.paths.Values() {
		h := &s.model.Hist
		s.by = &g.whole
		if n := h.Total(); n >= least && n < all.Total() {
			sp.path = coarseCounts(sp.path, h, first, last)
			sp.rest = sp.rest[:0]
			for i, n := range sp.whole {
				sp.rest = append(sp.rest, n-min(n, sp.path[i]))
			}
			if description(sp.path, used)+description(sp.rest, used) < together {
				s.by = s
			}
		}
		if s.by != s {
			s.judge, s.changed = nil, true
		}
	}
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
