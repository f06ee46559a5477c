package outlier

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// modal judges by modes. A function has one or more times that it usually takes,
// the modes, and around each a region in which times are dense. How quickly they
// become rare towards the ends of that region tells how far out they can still be
// expected: that is the mode's tail. What lies in no mode and in no tail is an
// outlier. No single time, however large, and no group of less than minMode of all
// has any influence on that, and a histogram is all that it needs.
//
// All lengths are in the logarithm of the time, so that the same rules hold for
// microseconds and minutes. docs/detectors.md tells what else was tried.
type modal struct {
	hist      *stats.Histogram
	threshold float64 // decades
	spans     []span  // in order of time; their tails may overlap
}

// span is a mode and its tails.
type span struct {
	low, high         int64 // times from here to here are normal
	nearLow, nearHigh int64 // beyond these they may turn out not to be
	weak              bool  // it may turn out to be none
	peak              float64
	down, up          tail
}

// The rules of modal, chosen by measurement.
const (
	// coverage is the share of times that is in modes, at least.
	coverage = 0.99
	// edgeDensity is the density at which a mode ends, as a share of that of the
	// highest peak, if that covers more, and then of its own.
	edgeDensity = 0.02
	// minMode is the share of times, and minTimes their number, without which a
	// group of times is no mode. So a second usual time is accepted when one call
	// in a hundred takes it, or, if it is only that of a phase of the run, when
	// maxPhase do.
	minMode, minTimes = 0.01, 3
	// weakTimes is how many times make sure that a mode is one.
	weakTimes = 100
	// edgeTimes are the times that a density must rest on to be taken seriously.
	edgeTimes = 3
	// shrinkage is how many times of a mode weigh as much as the assumption that its
	// tails are heavy; wellKnown are enough to know how they end.
	shrinkage, wellKnown = 150, 1000
	// fitCells is in how many cells the times of a side of a mode are counted to see
	// its shape, and leastFall by how much the logarithm of the density has fallen
	// where that begins to tell something.
	fitCells, leastFall = 6, 0.3
	// fewTimes are so few that twice as many decades are asked for; with more times
	// it is less.
	fewTimes = 30
	// resolution is added to all times: below it differences mean little.
	resolution = 8.0
	// tick is what clocks cannot tell apart.
	tick = 1.5
	// leastLoss is by how much a time must be off to matter, in microseconds.
	// Up to smallLoss it must also be separated from all that is normal by a gap:
	// short functions have a long tail of small disturbances.
	leastLoss, smallLoss = 20, 100
	gapFactor            = 1.5
	// maxOutliers is the share of times that can be outliers. If there are more, by
	// byChance standard deviations of their number, they are what the function is
	// like, and only those above the 99th percentile times farAbove are.
	maxOutliers, byChance, farAbove = 0.0075, 2, 4
	// It may be up to maxPhase if they belong to a phase of the run.
	// A span of time without that phase has at most hardlyAny of them. One with less
	// than minPhase makes no difference.
	maxPhase, minPhase, hardlyAny = 0.03, 0.005, 0.002
	// Where so many more times lie in front of the limit than can be expected that no
	// more than falseShare of them can be normal, it is drawn closer, but not below
	// closest. It needs a tail that is known to be light, and several outliers.
	falseShare, several, closest, lightTail = 0.02, 2, 8.5, 1.3
	// A mode is a plateau on a side where its density stays above half of the peak's
	// for more than this share of the way to its edge.
	plateau = 0.67
	// closeBy is how far the density has fallen where, with few times known, they
	// are kept because they may turn out to be outliers.
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

// newModal finds the modes of a function; decades is how rare a time must be to
// be an outlier: its density is that of the peak divided by a power of ten. Of a
// function that waits only long times are.
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
		from, to := 0, len(f.points) // where other modes end and begin
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

// judge returns how rare a time is, in decades, and the verdict.
func (m *modal) judge(v int64) (float64, Verdict) {
	if len(m.spans) == 0 { // times are everywhere and none is more usual
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

// ranges returns what is normal.
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

// slowOnly makes all times normal that are not longer than those of all modes.
func (m *modal) slowOnly() {
	for i := range m.spans {
		m.spans[i].low, m.spans[i].nearLow = 0, 0
	}
}

// maxDecades is the highest score.
const maxDecades = 100
