package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// widen extends a mode, between the points from and to, to the points that are dense
// relative to its own peak, which may be much lower than the highest. It returns the
// density at its ends.
func (f *finder) widen(r *region, from, to int) (edge float64) {
	peak := &f.points[r.peak]
	edge = min(f.edgeAt(peak.v), max(edgeDensity*peak.density, f.least(peak.v)))
	for r.last+1 < to && f.points[r.last+1].density >= edge && f.follows(r.last+1) {
		r.last++
	}
	for r.first > from && f.points[r.first-1].density >= edge && f.follows(r.first) {
		r.first--
	}
	return edge
}

// span returns the span of a mode between the previous mode, which ends before the point
// from, and the next, which begins at to.
func (f *finder) span(r region, from, to int) span {
	edge := f.widen(&r, from, to)
	p := f.points
	peak := &p[r.peak]
	s := span{
		peak: peak.x, weak: r.n < weakTimes || r.phase,
		up: f.upTail(&r, edge), down: f.downTail(&r, edge, func(p *point) float64 { return p.x }, f.fit(&r, -1)),
	}
	s.nearHigh = whole(timeAt(s.peak + s.up.reach(f.near(&s.up))))
	s.nearLow = whole(timeAt(s.peak-s.down.reach(f.near(&s.down)))) - 1
	high := max(timeAt(s.peak+s.up.reach(f.closest(&s, &r, to))), p[r.last].high+leastLoss)
	s.high = whole(f.bridge(r.last, high))
	linear := f.downTail(&r, edge, func(p *point) float64 { return p.v / peak.v }, unknown)
	s.low = whole(min(timeAt(s.peak-s.down.reach(f.target)), peak.v*(1-linear.reach(f.target)), p[r.first].low-leastLoss))
	certain := whole(max(p[r.last].high+leastLoss, f.far)) // tails based on few times are unstable
	s.nearHigh, s.nearLow = min(s.nearHigh, s.high, certain), max(s.nearLow, s.low, 0)
	// Either all times of a bin are certainly normal, or none.
	if bin := stats.BinOf(s.nearHigh); s.nearHigh < stats.BinLow(bin+1)-1 {
		s.nearHigh = stats.BinLow(bin) - 1
	}
	if bin := stats.BinOf(s.nearLow); s.nearLow > stats.BinLow(bin) {
		s.nearLow = stats.BinLow(bin + 1)
	}
	return s
}

// whole returns a time in whole microseconds, at most the greatest int64.
func whole(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// near returns the decrease of the density beyond which a time may turn out to be an
// outlier with more samples.
func (f *finder) near(t *tail) float64 {
	known := f.n / (f.n + wellKnown)
	if t.shape >= lightTail {
		return closeBy + (closest-0.5-closeBy)*known
	}
	return closeBy + max(f.target-1.5-closeBy, 0)*known
}

// closest returns the decrease of the density above a mode beyond which a time is an
// outlier. Points from the next mode are not in its tail. The tail of few waits is
// unstable.
func (f *finder) closest(s *span, r *region, next int) float64 {
	if s.up.shape < lightTail || f.target <= closest || f.waits && f.n < wellKnown {
		return f.target
	}
	limit, beyond, above, k := f.target, 0.0, 0.0, next
	for t := f.target; t >= closest; t -= 0.5 {
		distance := s.up.reach(t)
		for ; k > r.last+1 && f.points[k-1].x > s.peak+distance; k-- {
			above += f.points[k-1].n
			if f.passed != nil {
				above += f.passed[k-1]
			}
		}
		if t == f.target {
			beyond = above
		}
		slope := s.up.shape * (t - s.up.little) / max(distance-s.up.flat, f.width)
		if wrong := f.n * f.points[r.peak].density * math.Exp(-t) / slope; above >= several && wrong < falseShare*(above-beyond) {
			limit = t
		}
	}
	return limit
}

// bridge moves the upper limit of a mode over times that follow without a gap and are
// only a little longer.
func (f *finder) bridge(last int, high float64) float64 {
	before := f.points[last].high
	most := before + smallLoss
	for _, p := range f.points[last+1:] {
		if p.high > high {
			if p.high > most || p.low+resolution > gapFactor*(before+resolution) {
				break
			}
			high = p.high
		}
		before = p.high
	}
	return high
}

// limit raises the upper limit if there are too many outliers above the modes.
func (f *finder) limit(m *modal) {
	if len(m.spans) == 0 {
		return
	}
	top := int64(0)
	for i := range m.spans {
		top = max(top, m.spans[i].high)
	}
	above := 0.0
	for i := len(f.points) - 1; i >= 0 && f.points[i].v > float64(top); i-- {
		above += f.points[i].n
	}
	most := maxOutliers * f.n
	many := above > max(most+byChance*math.Sqrt(most), minTimes)
	// The coarse bin of the limit also has normal times.
	if many && (above > maxPhase*f.n || !f.passing(stats.CoarseBinOf(top)+1, math.MaxInt)) {
		last := &m.spans[len(m.spans)-1]
		last.high = max(last.high, whole(farAbove*f.quantile(0.99)))
	}
}

// quantile returns a time at or below which the share q of all times lies, to the
// precision of a bin.
func (f *finder) quantile(q float64) float64 {
	left := q * f.n
	for _, p := range f.points {
		if p.n > 0 && left <= p.n {
			if p.high == p.low {
				return p.low
			}
			return p.low + (p.high-p.low+1)*max(0, left)/p.n
		}
		left -= p.n
	}
	return 0
}
