package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// sstd judges by standard deviations from the mean.
type sstd struct {
	plain
	hist      *stats.Histogram
	threshold float64
	self      uint64         // what the judged time contributed itself: 1, or 0 to leave it in
	stats     stats.RunStats // of all times
	clipped   stats.RunStats // without outliers; empty when there are none
	most      float64        // bins that begin above it are left out of clipped
	// The standard deviation of what the clock cannot tell apart.
	resolution float64
}

func newSSTD(m *Model, threshold float64, self uint64, enough bool) *sstd {
	d := &sstd{hist: &m.Hist, threshold: threshold, self: self, stats: m.Stats.RunStats()}
	if enough && self > 0 {
		d.resolution = 1 / math.Sqrt(12)
		d.clip()
	}
	return d
}

func (d *sstd) oddness(v int64) float64 { return math.Abs(float64(v) - d.stats.Mean) }

func (d *sstd) params() any { return d.stats }

// judge counts standard deviations from the mean.
func (d *sstd) judge(v int64) (float64, Verdict) {
	s := d.stats
	if d.clipped.N > 0 {
		s = d.clipped
	}
	bin := stats.BinOf(v)
	if d.self > 0 && d.hist.Count(bin) > 0 && float64(stats.BinLow(bin)) <= d.most {
		s.Remove(float64(v))
	}
	sigma := max(s.Stddev(), d.resolution)
	off := math.Abs(float64(v) - s.Mean)
	score := off / max(sigma, 1e-10)
	switch {
	case off > float64(d.threshold*sigma):
		return score, Outlier
	case off > float64(nearSSTD*float64(d.threshold*sigma)):
		return score, Candidate
	}
	return score, Normal
}

// clip leaves single values out that make up more than a share of all squared
// deviations: no value alone may define what counts as normal.
func (d *sstd) clip() {
	d.most = math.Inf(1)
	s := d.stats
	for d.leaveOut(&s, poisonShare) { // behind one poison another may hide
	}
	d.leaveOut(&s, maxShare)
	if s.N < d.stats.N {
		d.clipped = s
	}
}

// leaveOut takes values out of s that alone make up more than a share of its
// squared deviations, and reports whether there were any.
func (d *sstd) leaveOut(s *stats.RunStats, share float64) bool {
	most := s.Mean + math.Sqrt(float64(share*s.M2))
	kept := d.hist.MomentsBelow(most)
	if kept.N == s.N {
		return false
	}
	for bin, n := range d.hist.Bins() {
		if float64(stats.BinLow(bin)) > most {
			break
		}
		// A value may be anywhere in its bin.
		width := float64(stats.BinLow(bin+1) - stats.BinLow(bin))
		kept.M2 += float64(n) * (float64(width*width) - 1) / 12
	}
	*s, d.most = kept, most
	return true
}

// Shares of all squared deviations that a single value may not exceed: one that
// exceeds the first is poison, and there may be several, each hidden by the next.
const (
	poisonShare = 0.5
	maxShare    = 0.05
)

// nearSSTD is the share of the threshold from which on a time is a candidate:
// the deviation shrinks when the outliers among the first values get company.
const nearSSTD = 0.5
