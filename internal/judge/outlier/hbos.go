package outlier

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// hbos judges by the number of other times in the same bin.
type hbos struct {
	plain
	hist       *stats.Histogram
	threshold  float64
	self       uint64  // see sstd
	limit      float64 // least score of an outlier
	rare       uint64  // highest count of a rare bin
	gapBin     int     // first bin of times that are outliers because of a gap
	nearGapBin int     // first bin of times that are candidates because of a gap
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
	d.rare, d.gapBin, d.nearGapBin = math.MaxUint64, stats.NumBins, stats.NumBins
	if d.self > 0 {
		d.guard()
		d.separate()
	}
	return d
}

func (d *hbos) oddness(v int64) float64 { return -float64(d.hist.Count(stats.BinOf(v))) }

func (d *hbos) params() any { return histogramParams{Histogram: d.hist, Threshold: d.limit} }

// separate finds the times above a gap of empty bins. If they are at most the outlier share, they are outliers even if they
// recur so often that their bin is not rare.
func (d *hbos) separate() {
	total := float64(d.hist.Total())
	above, last := total, stats.NumBins
	for bin, n := range d.hist.Bins() {
		if bin-last > gapBins {
			if above <= float64((1-d.threshold)*total) {
				d.gapBin = min(d.gapBin, bin)
			}
			if above <= float64(notRare*(1-d.threshold)*total) {
				d.nearGapBin = min(d.nearGapBin, bin)
			}
		}
		above -= float64(n)
		last = bin
	}
}

// gapBins is the number of bins of a gap. Over a gap, a time grows by a fifth, and a short time by that many ticks.
const gapBins = 16

// guard finds the highest count of a bin that is rare not only among bins but also among times: at most the outlier share may
// lie in bins with that count or less. It keeps hbos from flagging times that are merely less frequent, early in a run, when
// most bins have a count of one or two, and if times take only a few values.
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

// judge scores a time by the number of others in its bin.
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
	case score >= d.limit && rare || bin >= d.gapBin:
		return score, Outlier
	case score >= d.limit || n <= nearHBOS || bin >= d.nearGapBin:
		return score, Candidate
	}
	return score, Normal
}

// nearHBOS is the greatest number of other times in the bin of a candidate, which may be rare at the end.
const nearHBOS = 3
