package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// CoarseTimes counts times in coarse bins to decide whether a context such as the call path explains their spread. The zero
// value is empty. A CoarseTimes can be reused.
type CoarseTimes struct {
	first  int      // bin of counts[0]
	counts []uint64 // of consecutive bins
	rest   []uint64 // scratch
}

// Count replaces the counts by those of a histogram.
func (c *CoarseTimes) Count(h *stats.Histogram) {
	first, last := -1, 0
	for bin := range h.Bins() {
		if last = stats.CoarseBinOf(stats.BinLow(bin)); first < 0 {
			first = last
		}
	}
	c.count(h, max(first, 0), last)
}

// CountPart replaces the counts by those of a histogram of a part of all times, in the bins of all. Times outside these bins
// count in the first or the last one.
func (c *CoarseTimes) CountPart(h *stats.Histogram, all *CoarseTimes) {
	c.count(h, all.first, all.first+len(all.counts)-1)
}

func (c *CoarseTimes) count(h *stats.Histogram, first, last int) {
	c.first = first
	c.counts = append(c.counts[:0], make([]uint64, last-first+1)...)
	for bin, n := range h.Bins() {
		c.counts[min(max(stats.CoarseBinOf(stats.BinLow(bin)), first), last)-first] += n
	}
}

// Explain reports whether c, a part of all times counted by CountPart, should be judged separately: it has at least least times
// but not all of them, and two histograms, of c and of the rest, describe the times in fewer bits than one histogram.
func (c *CoarseTimes) Explain(all *CoarseTimes, least uint64) bool {
	c.rest = c.rest[:0]
	part, rest, bins := uint64(0), uint64(0), 0
	for i, n := range all.counts {
		if n > 0 {
			bins++
		}
		part += c.counts[i]
		n -= min(n, c.counts[i])
		rest += n
		c.rest = append(c.rest, n)
	}
	return part >= least && rest > 0 && description(c.counts, bins)+description(c.rest, bins) < description(all.counts, bins)
}

// description returns the number of bits that describe times by a histogram with bins bins: the ideal code for the counts, and
// half the logarithm of the number of times for each free parameter of that code, as in the Bayesian information criterion.
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
