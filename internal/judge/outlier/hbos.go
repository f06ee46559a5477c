package outlier

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// hbos judges by how few others share the bin of a time.
type hbos struct {
	plain
	hist      *stats.Histogram
	threshold float64
	self      uint64  // as in sstd
	limit     float64 // the score from which on a time is an outlier
	rare      uint64  // and the highest count of its bin
	apart     int     // or the first bin of what is far from all others
	afar      int     // the same for candidates
}

func newHBOS(h *stats.Histogram, threshold float64, self uint64, enough bool) *hbos {
	d := &hbos{hist: h, threshold: threshold, self: self}
	if !enough {
		return d
	}
	low, high := math.Inf(1), math.Inf(-1)
	total := float64(d.hist.Total())
	for _, n := range d.hist.Bins() {
		s := rarity(float64(n) / total)
		low, high = min(low, s), max(high, s)
	}
	d.limit = max(low+float64(d.threshold*(high-low)), floorScore)
	d.rare, d.apart, d.afar = math.MaxUint64, stats.NumBins, stats.NumBins
	if d.self > 0 {
		d.guard()
		d.separate()
	}
	return d
}

func (d *hbos) oddness(v int64) float64 { return -float64(d.hist.Count(stats.BinOf(v))) }

func (d *hbos) params() any { return histogramParams{Histogram: d.hist, Threshold: d.limit} }

// separate finds what lies above all others, behind a gap of empty bins. If it is
// no more than the share that is not normal it is anomalous even when it comes
// again and again, so that its bin is not rare any more.
func (d *hbos) separate() {
	total := float64(d.hist.Total())
	above, last := total, stats.NumBins
	for bin, n := range d.hist.Bins() {
		if bin-last > gapBins {
			if above <= float64((1-d.threshold)*total) {
				d.apart = min(d.apart, bin)
			}
			if above <= float64(notRare*(1-d.threshold)*total) {
				d.afar = min(d.afar, bin)
			}
		}
		above -= float64(n)
		last = bin
	}
}

// gapBins is how many bins make a gap: in so many a time grows by a fifth, and a
// short one by as many microseconds.
const gapBins = 16

// guard finds the highest count of a bin that is rare not only among bins but
// among times: no more than the share that is not normal may lie in bins with as
// few or fewer. Early in a run, where most bins hold one or two, and where times
// take only a few values, it keeps hbos from flagging what is merely less
// frequent.
func (d *hbos) guard() {
	var counts []uint64
	for _, n := range d.hist.Bins() {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	allowed := max(1, float64(notRare*(1-d.threshold)*float64(d.hist.Total())))
	sum := 0.0
	d.rare = 0
	for i, n := range counts {
		sum += float64(n)
		if sum > allowed {
			return
		}
		if i+1 == len(counts) || counts[i+1] > n {
			d.rare = n
		}
	}
}

// notRare is the slack factor on the outlier share.
const notRare = 5

// judge scores a time by how few others share its bin.
func (d *hbos) judge(v int64) (float64, Verdict) {
	bin := stats.BinOf(v)
	n := d.hist.Count(bin)
	total := d.hist.Total()
	rare := n <= d.rare
	if n > 0 {
		n -= d.self
		total -= d.self
	}
	score := rarity(float64(n) / float64(max(total, 1)))
	switch {
	case score >= d.limit && rare || bin >= d.apart:
		return score, Outlier
	case score >= d.limit || n <= nearHBOS || bin >= d.afar:
		return score, Candidate
	}
	return score, Normal
}

// nearHBOS is the number of others in its bin up to which a time is a
// candidate: so few may turn out to be few in the end.
const nearHBOS = 3
