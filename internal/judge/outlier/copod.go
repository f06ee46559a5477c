package outlier

import (
	"cmp"
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// copod judges by the position of a time in a tail of the distribution.
type copod struct {
	plain
	hist  *stats.Histogram
	self  uint64  // see sstd
	limit float64 // least score of an outlier
	skew  float64
	below []float64 // number of values below each bin, from first to one after the last
	first int
}

func newCOPOD(h *stats.Histogram, threshold float64, self uint64, enough bool) *copod {
	d := &copod{hist: h, self: self}
	if !enough {
		return d
	}
	first, last := binsOf(h)
	d.first = first
	sum := 0.0
	for bin := d.first; bin <= last+1; bin++ {
		d.below = append(d.below, sum)
		sum += float64(d.hist.Count(bin))
	}
	m := d.hist.Moments()
	if m.N > 1 && m.M2 > 0 {
		d.skew = m.N / (m.N - 1) * (m.M3 / m.N) / math.Pow(m.M2/m.N, 1.5)
	}
	low, high := rarity(0), -rarity(0)
	for bin := range d.hist.Bins() {
		s := d.tail(int64(stats.BinMiddle(bin)), 0)
		low, high = min(low, s), max(high, s)
	}
	d.limit = max(low+float64(threshold*(high-low)), floorScore)
	return d
}

func (d *copod) oddness(v int64) float64 { return d.tail(v, 0) }

func (d *copod) params() any { return histogramParams{Histogram: d.hist, Threshold: d.limit} }

// judge scores a time by its position in the tails.
func (d *copod) judge(v int64) (float64, Verdict) {
	score := d.tail(v, float64(d.self))
	switch {
	case score >= d.limit:
		return score, Outlier
	case score >= float64(nearCOPOD*d.limit):
		return score, Candidate
	}
	return score, Normal
}

const nearCOPOD = 0.9

// tail returns the score of v among all other values.
func (d *copod) tail(v int64, self float64) float64 {
	total := float64(d.hist.Total())
	bin := stats.BinOf(v)
	at, below := 0.0, 0.0
	switch i := bin - d.first; {
	case i < 0:
	case i >= len(d.below):
		below = total
	default:
		at, below = float64(d.hist.Count(bin)), d.below[i]
	}
	if at > 0 {
		at -= self
		total -= self
	}
	share := func(n float64) float64 { return min(1, (n+1)/max(total, 1)) }
	// Values in the same bin as v count on both sides of it, so that equal times are in no tail.
	left, right := below+at, total-below
	l, r := rarity(0), rarity(0)
	if left > 0 {
		l = rarity(share(left))
	}
	if right > 0 {
		r = rarity(share(right))
	}
	return max((l+r)/2, -float64(cmp.Compare(d.skew, 1))*l+float64(cmp.Compare(d.skew, -1))*r)
}
