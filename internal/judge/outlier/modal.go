package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// modal judges by modes. A function has one or more usual times, the modes, with a
// region of dense times around each. The decrease of the density towards the ends of
// the region determines how far out times can still be expected: the mode's tail. A time
// outside all modes and tails is an outlier. No single time, however large, and no group
// smaller than minMode of all times influences this. It needs only a histogram.
//
// All lengths are in the logarithm of the time, so that the same rules apply to
// microseconds and minutes. docs/detectors.md describes the alternatives.
type modal struct {
	hist      *stats.Histogram
	threshold float64 // decades
	spans     []span  // in order of time; their tails may overlap
}

// span is a mode and its tails.
type span struct {
	low, high         int64 // normal times
	nearLow, nearHigh int64 // times outside may turn out to be outliers
	weak              bool  // may turn out not to be a mode
	peak              float64
	down, up          tail
}

// The rules of modal, chosen by measurement.
const (
	// coverage is the least share of times in modes.
	coverage = 0.99
	// edgeDensity is the density at which a mode ends: a share of that of the highest
	// peak if that covers more, and then of its own.
	edgeDensity = 0.02
	// minMode and minTimes are the least share and number of times of a mode. So a second
	// usual time is accepted if it is taken by one call in a hundred, or by maxPhase of
	// the calls if it belongs to a phase of the run.
	minMode, minTimes = 0.01, 3
	// weakTimes is the number of times that make a mode certain.
	weakTimes = 100
	// edgeTimes is the number of times that a significant density is based on.
	edgeTimes = 3
	// shrinkage is the number of times that weigh as much as the assumption of heavy
	// tails; wellKnown times determine the end of a tail.
	shrinkage, wellKnown = 150, 1000
	// fitCells is the number of cells for estimating the shape of a side of a mode;
	// leastFall is the least decrease of the logarithm of the density that is significant.
	fitCells, leastFall = 6, 0.3
	// fewTimes is the number of times that doubles the required decades; more times
	// increase them less.
	fewTimes = 30
	// resolution is added to all times: smaller differences are insignificant.
	resolution = 8.0
	// tick is the resolution of clocks.
	tick = 1.5
	// leastLoss is the least deviation that matters, in microseconds. Up to smallLoss, a
	// gap must also separate an outlier from normal times, because short functions have a
	// long tail of small disturbances.
	leastLoss, smallLoss = 20, 100
	gapFactor            = 1.5
	// maxOutliers is the greatest share of outliers. If there are more, by byChance
	// standard deviations of their number, they are normal, and only times above farAbove
	// times the 99th percentile are outliers.
	maxOutliers, byChance, farAbove = 0.0075, 2, 4
	// The share of outliers may be up to maxPhase if they belong to a phase of the run. A
	// span of time outside the phase has at most hardlyAny of them. A phase with less than
	// minPhase is insignificant.
	maxPhase, minPhase, hardlyAny = 0.03, 0.005, 0.002
	// The limit moves closer, down to closest, if the times before it exceed the
	// expectation so much that at most falseShare of them can be normal. This needs a
	// light tail and several outliers.
	falseShare, several, closest, lightTail = 0.02, 2, 8.5, 1.3
	// A mode is a plateau on a side if its density stays above half of the peak's for more
	// than this share of the distance to its edge.
	plateau = 0.67
	// closeBy is the decrease of the density beyond which times are kept as candidates if
	// there are few samples.
	closeBy = 5
)

// point is a bin with times in it.
type point struct {
	x, v    float64 // the logarithm and the middle of the times
	low     float64 // the shortest
	high    float64 // the longest
	n       float64
	density float64
}

func position(v float64) float64 { return math.Log(v + resolution) }

func timeAt(x float64) float64 { return math.Exp(x) - resolution }

// newModal finds the modes of a function. The density of an outlier is that of the peak
// divided by ten to the power of decades. If waits is set only long times are outliers.
func newModal(learned *Model, decades float64, halfLife int64, waits bool) *modal {
	h := &learned.Hist
	f := finder{points: make([]point, 0, 64), target: decades * math.Ln10, line: learned.timeline(), waits: waits}
	for bin, n := range h.Bins() {
		p := point{v: stats.BinMiddle(bin), low: float64(stats.BinLow(bin)), high: float64(stats.BinLow(bin+1) - 1), n: float64(n)}
		p.x = position(p.v)
		f.points = append(f.points, p)
		f.n += p.n
	}
	if waits {
		f.leaveOut()
	}
	if weights := f.remembered(learned, halfLife); weights != nil {
		f.weigh(weights)
	}
	f.target *= 1 + fewTimes/f.n
	f.far = 2 * h.Quantile(max(0.5, min(0.99, 1-5/float64(h.Total()))))
	f.width = max(f.shortestHalf()/4, 1.0/128)
	f.estimate()
	modes := f.modes()
	m := &modal{hist: h, threshold: decades, spans: make([]span, 0, len(modes))}
	for i, r := range modes {
		from, to := 0, len(f.points) // end of the previous and start of the next mode
		if i > 0 {
			from = modes[i-1].last + 1
		}
		if i+1 < len(modes) {
			to = modes[i+1].first
		}
		m.spans = append(m.spans, f.span(r, from, to))
	}
	f.limit(m)
	if waits {
		m.slowOnly()
	}
	return m
}

// judge returns the rarity of a time in decades, and the verdict.
func (m *modal) judge(v int64) (float64, Verdict) {
	if len(m.spans) == 0 { // times are spread evenly
		return 0, Normal
	}
	x := position(float64(v))
	score, verdict := math.Inf(1), Outlier
	for i := range m.spans {
		s := &m.spans[i]
		decay := 0.0
		if x > s.peak {
			decay = s.up.decay(x - s.peak)
		} else {
			decay = s.down.decay(s.peak - x)
		}
		score = min(score, decay/math.Ln10)
		if v < s.low || v > s.high || verdict == Normal {
			continue
		}
		verdict = Candidate
		if !s.weak && v >= s.nearLow && v <= s.nearHigh {
			verdict = Normal
		}
	}
	return min(score, maxDecades), verdict
}

func (m *modal) oddness(v int64) float64 { return -float64(m.hist.Count(stats.BinOf(v))) }

func (m *modal) decades(v int64) float64 {
	score, _ := m.judge(v)
	return score
}

// ranges returns the normal ranges.
func (m *modal) ranges() (all []Range) {
	for i := range m.spans {
		s := &m.spans[i]
		if k := len(all) - 1; k >= 0 && s.low <= all[k].High+1 {
			all[k].High = max(all[k].High, s.high)
		} else {
			all = append(all, Range{s.low, s.high})
		}
	}
	return all
}

func (m *modal) params() any {
	p := histogramParams{Histogram: m.hist, Threshold: m.threshold}
	for i := range m.spans {
		p.Normal = append(p.Normal, [2]int64{max(m.spans[i].low, 0), m.spans[i].high})
	}
	return p
}

// slowOnly makes all short times normal.
func (m *modal) slowOnly() {
	for i := range m.spans {
		m.spans[i].low, m.spans[i].nearLow = 0, 0
	}
}

// maxDecades is the highest score.
const maxDecades = 100
