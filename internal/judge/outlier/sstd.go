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
	self      uint64         // contribution of the judged time to exclude: 1 or 0
	stats     stats.RunStats // all times
	clipped   stats.RunStats // times without outliers; empty if there are no outliers
	most      float64        // clipped excludes bins that begin above it
	// resolution is the standard deviation of times that the clock does not distinguish.
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

// clip excludes single values with more than a share of all squared deviations: no value alone may define what is normal.
func (d *sstd) clip() {
	d.most = math.Inf(1)
	s := d.stats
	for d.leaveOut(&s, poisonShare) { // one extreme value may hide another
	}
	d.leaveOut(&s, maxShare)
	if s.N < d.stats.N {
		d.clipped = s
	}
}

// leaveOut removes values from s that alone have more than a share of its squared deviations, and reports whether there were
// any.
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

// Greatest shares of all squared deviations of a single value. Several values may exceed poisonShare, each hidden by the next.
const (
	poisonShare = 0.5
	maxShare    = 0.05
)

// nearSSTD is the share of the threshold above which a time is a candidate: the standard deviation shrinks as more values follow
// the first outliers.
const nearSSTD = 0.5
