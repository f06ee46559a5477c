package outlier

import (
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// tail judges times by the tails that the bulk of the times predicts. It fits generalized Pareto distributions to the times
// between two quantiles, such as the median and the longest eighth, and extrapolates them to the time that only one call in a
// million exceeds. Trouble lies beyond the upper quantile, so it cannot hide itself by making the tail heavier. There are several
// fits for the longest half of the times, one for the longest quarter, and so on. The lowest of their limits counts, because trouble can
// only raise limits.
//
// A function may have several usual times. If a valley separates them, each of these modes has its own limits. A short time is
// never an outlier, because it loses nothing, but a time between two modes may be one.
//
// A third rule finds slow modes: times above a gap that is too wide for any tail, such as a twentieth of the calls taking ten
// times as long as all others.
type tail struct {
	hist      *stats.Histogram
	threshold float64 // decades
	modes     []mode  // at least one, in order of time
	slow      *mode   // mode of slow calls, or nil
	slowCalls float64 // number of calls of slow
	usual     int64   // shortest usual time
	early     int64   // longer times of a function with few calls are candidates, although they are frequent so far
}

// mode is a usual time with its tails.
type mode struct {
	low, high         int64 // limits of normal times
	nearLow, nearHigh int64 // times outside these limits are candidates
	down, up          fit
}

// The rules of tail. docs/detectors.md has measurements with other values.
const (
	// startShare is the share of the times in the first fit. Each further fit has half as many, as long as a quarter of them
	// is at least leastTimes.
	startShare, leastTimes = 0.5, 60
	// A fit uses the spacings between quantiles. The share of the fit exceeds the first quantile, and a share less by the factor
	// spacingRatio exceeds the next one. Fits use spacings of them; the first share has further fits with more, up to mostSpacings,
	// because a few calls give a better estimate if most of them count.
	spacings, mostSpacings = 4, 8
	// The tail index is 0 for an exponential tail and 1/a for a power law with exponent a. Without samples it is expected
	// to be priorIndex with an error of priorError. The estimate is increased by indexErrors standard errors, so that one in ten
	// tails is heavier.
	priorIndex, priorError, indexErrors = 0.3, 0.2, 1.28
	// lightest and heaviest limit the tail index: a lognormal part looks lighter in the bulk than it is, and heavier tails
	// have no useful limit. Tails of short times are light, because a function has a least amount of work.
	lightest, heaviest = 0.1, 2.0 / 3
	exponential        = 1e-3 // index of the tails of short times

	// slowShare is the greatest share of calls above a gap that are a slow mode. A larger mode is part of the bulk. If the
	// share is below singleShare, or they are fewer than leastSlow, the calls are single outliers.
	slowShare, singleShare, leastSlow = 0.125, 0.01, 8
	// maxModeRatio is the greatest ratio of the ends of the middle half of the times of a slow mode. Calls that are slow in
	// different ways are outliers.
	maxModeRatio = 2
	// maxExamples is the approximate number of calls of a slow mode to keep over all ranks: enough to find most waits for
	// them. The model counts all of them.
	maxExamples = 10_000
	// sampleSlack is the factor by which a sample may be larger when more calls are learned. In a live run with a slow rank whose
	// analyzers were restarted three times (2026-11-19), samples had been too small by 0.7 %.
	sampleSlack = 1.1
	// maxExcess is the approximate number of calls with excess work to keep. No model counts them.
	maxExcess = 100_000
	// nearDecades is how much less rare than an outlier a candidate may be.
	nearDecades = 2
	// Of at most fewCalls calls, more than slowShare may be slow for now, but at most halfShare. Those above a gap are
	// candidates.
	fewCalls, halfShare = 480, 0.5
	// A valley is one of cells with equal numbers of times that is valley times as wide, in the logarithm of time, as one
	// before it and one after it. A cell has at least cellTimes times.
	cells, valley, cellTimes = 16, 4, 8
	// leastStep is the shortest distance between two quantiles in ticks, the resolution of clocks.
	leastStep = 1.0
	// maxDecades is the highest score.
	maxDecades = 100
)

// spacingRatio is the ratio of the shares of two quantiles of a fit.
const spacingRatio = 1 / math.Sqrt2

// estimator estimates the tail index from spacings. It contains the values that do not depend on the times.
type estimator struct {
	coefficients []float64 // of the logarithms of the spacings in the index
	variance     float64   // of the index, times the number of times
	fitRange     float64   // ratio of the shares that exceed the first and the last quantile
}

// estimators have spacings, ..., mostSpacings spacings.
var estimators = func() (all []estimator) {
	for n := spacings; n <= mostSpacings; n += 2 {
		all = append(all, newEstimator(n))
	}
	return all
}()

func newEstimator(n int) estimator {
	e := estimator{coefficients: make([]float64, n), fitRange: math.Pow(spacingRatio, -float64(n))}
	weight, total, middle, spread := 1-spacingRatio, 0.0, 0.0, 0.0
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = weight // share of the times in the spacing
		total += weight
		middle += float64(weight * float64(i))
		weight *= spacingRatio
	}
	middle /= total
	for i, w := range weights {
		d := float64(i) - middle
		spread += float64(w*d) * d
	}
	slope := -math.Log(spacingRatio)
	for i, w := range weights {
		e.coefficients[i] = float64(w*(float64(i)-middle)) / (spread * slope)
	}
	e.variance = 1 / (float64(spread*slope) * slope)
	return e
}

// fit is a generalized Pareto distribution of the distances of the last share of all times from a quantile.
type fit struct {
	from  float64 // the quantile
	side  float64 // 1 if the times are above it, -1 if below
	share float64
	last  float64 // share of the times beyond the last quantile
	scale float64
	index float64
}

// at returns the time beyond which the share rare of all times lies, but at least the last time on which the fit is based.
func (f *fit) at(rare float64) float64 {
	return f.from + float64(f.side*f.scale*(math.Pow(f.share/min(f.last, rare), f.index)-1))/f.index
}

// decades returns -log10 of the share of all times beyond v.
func (f *fit) decades(v float64) float64 {
	distance := max(0, float64(f.side*(v-f.from)))
	return -math.Log10(f.share) + math.Log10(1+float64(f.index*distance)/f.scale)/f.index
}

// newTail finds the modes of a function and their tails. One in 10^decades times exceeds a limit, which is at least least ticks
// above the median of its mode.
func newTail(h *stats.Histogram, decades float64, least int64) *tail {
	q := newQuantiles(h)
	t := &tail{hist: h, threshold: decades, usual: int64(q.at(usualLow))}
	rare, from := math.Pow(10, -decades), 0.0
	for _, to := range append(q.valleys(), 1) {
		part := quantiles{bins: q.bins, upTo: q.upTo, total: q.total, from: from, share: to - from}
		var m mode
		median := part.at(0.5)
		limit, near := part.limits(&m.up, 1, rare)
		if to == 1 {
			if gap := min(q.gap(decades, float64(least), slowShare), q.gapIn(&m.up, rare, float64(least))); !math.IsInf(gap, 1) {
				limit = min(limit, gap)
				t.findSlow(q, gap, rare)
			}
			near = min(near, q.gap(decades/3, float64(least), slowShare))
		}
		lowest := median + float64(least)
		m.high, m.nearHigh = wholeTicks(max(limit, lowest)), wholeTicks(max(min(near, limit), lowest))
		if k := len(t.modes) - 1; k >= 0 {
			limit, near = part.limits(&m.down, -1, rare)
			m.low, m.nearLow = wholeTicks(max(0, limit)), wholeTicks(max(0, near, limit))
			// Longer times belong to this mode.
			t.modes[k].high, t.modes[k].nearHigh = min(t.modes[k].high, wholeTicks(median)), min(t.modes[k].nearHigh, wholeTicks(median))
			t.modes[k].align()
		}
		m.align()
		t.modes = append(t.modes, m)
		from = to
	}
	if t.early = math.MaxInt64; q.total <= fewCalls {
		t.early = wholeTicks(q.gap(decades/3, float64(least), halfShare))
	}
	return t
}

// findSlow finds the mode of the calls above a gap, if they take similar times.
func (t *tail) findSlow(q *quantiles, gap, rare float64) {
	share := 1 - q.before(int64(gap)+1)/q.total
	if share < singleShare || share*q.total < leastSlow {
		return
	}
	part := quantiles{bins: q.bins, upTo: q.upTo, total: q.total, from: 1 - share, share: share}
	if part.at(0.75) > maxModeRatio*part.at(0.25) {
		return
	}
	t.slow, t.slowCalls = &mode{low: int64(gap) + 1}, share*q.total
	limit, _ := part.limits(&t.slow.up, 1, rare)
	t.slow.high = wholeTicks(limit)
}

// align extends the normal times to entire bins.
func (m *mode) align() {
	if bin := stats.BinOf(m.nearHigh); m.nearHigh < stats.BinLow(bin+1)-1 {
		m.nearHigh = stats.BinLow(bin) - 1
	}
	if bin := stats.BinOf(m.nearLow); m.nearLow > stats.BinLow(bin) {
		m.nearLow = stats.BinLow(bin + 1)
	}
}

// TailLimit returns the time that one in 10^decades times exceeds, as predicted by the bulk of the times.
func TailLimit(h *stats.Histogram, decades float64) int64 {
	modes := newTail(h, decades, 0).modes
	return modes[len(modes)-1].high
}

// wholeTicks rounds a time to ticks, at most the greatest int64.
func wholeTicks(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

func (t *tail) judge(v int64) (float64, Verdict) {
	score, verdict := math.Inf(1), t.verdict(v)
	for i := range t.modes {
		m := &t.modes[i]
		f := &m.up
		if float64(v) < f.from && i > 0 {
			f = &m.down
		}
		score = min(score, f.decades(float64(v)))
	}
	if verdict >= Recurring {
		score = max(score, t.threshold) // v may be above a gap
	}
	return min(score, maxDecades), verdict
}

func (t *tail) verdict(v int64) Verdict {
	verdict := Outlier
	for i := range t.modes {
		switch m := &t.modes[i]; {
		case v < m.low || v > m.high || verdict == Normal: // in another mode at most
		case v < m.nearLow || v > m.nearHigh:
			verdict = Candidate
		default:
			verdict = Normal
		}
	}
	switch {
	case verdict == Normal && v > t.early:
		return Candidate
	case verdict == Outlier && t.slow != nil && v >= t.slow.low && v <= t.slow.high:
		return Recurring
	}
	return verdict
}

// sample returns the share of the calls of the slow mode to keep.
func (t *tail) sample() float64 { return min(1, maxExamples/max(1, t.slowCalls)) }

func (t *tail) oddness(v int64) float64 { return -float64(t.hist.Count(stats.BinOf(v))) }

func (t *tail) decades(v int64) float64 {
	score, _ := t.judge(v)
	return score
}

// ranges returns the normal ranges.
func (t *tail) ranges() (all []Range) {
	for i := range t.modes {
		r := Range{t.modes[i].low, t.modes[i].high}
		if i == 0 {
			r.Low = min(t.usual, r.High)
		}
		if k := len(all) - 1; k >= 0 && r.Low <= all[k].High+1 {
			all[k].High = max(all[k].High, r.High)
		} else {
			all = append(all, r)
		}
	}
	return all
}

func (t *tail) params() any {
	p := histogramParams{Histogram: t.hist, Threshold: t.threshold}
	for i := range t.modes {
		p.Normal = append(p.Normal, [2]int64{t.modes[i].low, t.modes[i].high})
	}
	return p
}

// quantiles finds quantiles of a part of the times of a histogram by binary search.
type quantiles struct {
	bins  []int     // nonempty bins, in order
	upTo  []float64 // number of times up to the end of each bin
	total float64   // number of times of the histogram
	from  float64   // share of the times before the part
	share float64   // share of the times in the part
}

func newQuantiles(h *stats.Histogram) *quantiles {
	q := &quantiles{bins: make([]int, 0, 64), upTo: make([]float64, 0, 64), share: 1}
	for bin, n := range h.Bins() {
		q.total += float64(n)
		q.bins, q.upTo = append(q.bins, bin), append(q.upTo, q.total)
	}
	return q
}

// at returns a time at or below which a share of the part lies, to the precision of a bin.
func (q *quantiles) at(share float64) float64 {
	want := (q.from + float64(share*q.share)) * q.total
	i, _ := slices.BinarySearch(q.upTo, want)
	i = min(i, len(q.bins)-1)
	low, width := float64(stats.BinLow(q.bins[i])), float64(stats.BinLow(q.bins[i]+1)-stats.BinLow(q.bins[i]))
	if width == 1 {
		return low
	}
	before := 0.0
	if i > 0 {
		before = q.upTo[i-1]
	}
	return low + width*max(0, want-before)/(q.upTo[i]-before)
}

// limits returns the time beyond which, above or below the part, only the share rare of all times is expected, and the closest
// limit that more times may give. It sets best to the fit of the limit.
func (q *quantiles) limits(best *fit, side, rare float64) (limit, near float64) {
	limit, near = side*math.Inf(1), side*math.Inf(1)
	closer := func(x, y float64) bool { return side*x < side*y }
	try := func(share float64, e *estimator) {
		used, lower := q.fit(side, share, e)
		if l := used.at(rare); closer(l, limit) {
			limit, *best = l, used
		}
		if l := lower.at(rare * math.Pow(10, nearDecades)); closer(l, near) {
			near = l
		}
	}
	for i := range estimators {
		try(startShare, &estimators[i])
	}
	for share := startShare / 2; share*q.share*q.total >= 4*leastTimes && share*q.share > 16*rare; share /= 2 {
		try(share, &estimators[0])
	}
	return limit, near
}

// fit fits the last share of the part above or below its median. It returns that fit, and the one with the lightest tail that the
// times allow.
func (q *quantiles) fit(side, share float64, e *estimator) (used, lower fit) {
	at := func(tail float64) float64 {
		if side > 0 {
			return q.at(1 - tail)
		}
		return q.at(tail)
	}
	from := at(share)
	distance, tail, estimate := 0.0, share, 0.0
	for _, c := range e.coefficients {
		tail *= spacingRatio
		next := max(float64(side*(at(tail)-from)), distance+leastStep)
		estimate += float64(c * math.Log(next-distance))
		distance = next
	}
	known, prior := share*q.share*q.total/e.variance, 1/(priorError*priorError)
	estimate = (float64(estimate*known) + float64(priorIndex*prior)) / (known + prior)
	err := 1 / math.Sqrt(known+prior)
	with := func(x float64) fit {
		x = max(lightest, min(heaviest, x))
		if side < 0 {
			x = exponential
		}
		return fit{from, side, share * q.share, tail * q.share, distance * x / (math.Pow(e.fitRange, x) - 1), x}
	}
	return with(estimate + float64(indexErrors*err)), with(estimate - 2*err)
}

// valleys returns the shares of the times before each valley.
func (q *quantiles) valleys() (all []float64) {
	if q.total < cells*cellTimes {
		return nil
	}
	var edges [cells + 1]float64
	for i := range edges {
		edges[i] = q.at(float64(i) / cells)
	}
	var width [cells]float64
	for i := range width {
		width[i] = math.Log((max(edges[i+1], edges[i]+2*leastStep) + logResolution) / (edges[i] + logResolution))
	}
	begin := 0
	for i := 1; i < cells-int(cells*slowShare); i++ { // the end may be a slow mode
		if i > begin && width[i] > valley*slices.Min(width[begin:i]) && width[i] > valley*slices.Min(width[i+1:]) {
			all = append(all, q.bottom(edges[i], edges[i+1]))
			begin = i + 1
		}
	}
	return all
}

// bottom returns the share of the times before the emptiest of the parts between two times, which have equal width in the
// logarithm.
func (q *quantiles) bottom(from, to float64) (share float64) {
	const parts = cellTimes
	step := math.Log((to+logResolution)/(from+logResolution)) / parts
	before := func(i int) float64 {
		return q.before(int64((from+logResolution)*math.Exp(float64(step*float64(i))) - logResolution))
	}
	fewest := math.Inf(1)
	for i := range parts {
		if n := before(i+1) - before(i); n < fewest {
			fewest, share = n, before(i)+n/2
		}
	}
	return share / q.total
}

// before returns the number of times in bins before that of v.
func (q *quantiles) before(v int64) float64 {
	k, _ := slices.BinarySearch(q.bins, stats.BinOf(v))
	if k == 0 {
		return 0
	}
	return q.upTo[k-1]
}

// gap returns the longest time below the lowest gap that is too wide for a tail of the heaviest index, or infinity. At most the
// share most of the times is above it. The next of the i longest times is longer by a factor f with probability f^(-i/heaviest).
// Times are first increased by least, because smaller differences do not matter.
func (q *quantiles) gap(decades, least, most float64) float64 {
	needed := float64(decades*math.Ln10) + math.Log(q.total)
	lowest := math.Inf(1)
	for i := len(q.bins) - 1; i > 0; i-- {
		above := q.total - q.upTo[i-1]
		if above > most*q.total {
			break
		}
		if q.bins[i] == q.bins[i-1]+1 {
			continue
		}
		end, begin := float64(stats.BinLow(q.bins[i-1]+1)-1), float64(stats.BinLow(q.bins[i]))
		if above/heaviest*math.Log((begin+least)/(end+least)) > needed {
			lowest = begin - 1
		}
	}
	return lowest
}

// gapIn is like gap for the tail of a fit instead of the heaviest one. All of the i longest times are beyond a gap with the i-th
// power of the probability that one beyond its beginning is. The gap must be among the candidates. Whole numbers without a least
// difference, such as numbers of calls, always have gaps.
//
// If there are at most fewCalls calls, the i longest ones may be flagged by chance with probability total*rare/(i*i*(i+1)). The
// expected number of such calls for all i is then total*rare, as many as are beyond the limit of a fit.
func (q *quantiles) gapIn(f *fit, rare, least float64) float64 {
	lowest := math.Inf(1)
	if least <= 0 {
		return lowest
	}
	needed, nearest := math.Log(q.total/rare), f.at(rare*math.Pow(10, nearDecades))
	for i := len(q.bins) - 1; i > 0; i-- {
		above, begin := q.total-q.upTo[i-1], float64(stats.BinLow(q.bins[i]))
		if above > slowShare*q.total || begin <= nearest {
			break
		}
		if q.total <= fewCalls {
			needed = math.Log(float64(above*above) * (above + 1) / (q.total * rare))
		}
		end := float64(stats.BinLow(q.bins[i-1]+1) - 1)
		scale := f.scale + float64(f.index*(max(0, end-f.from)+least)) // of times beyond end
		if above/f.index*math.Log1p(f.index*(begin-end)/scale) > needed {
			lowest = begin - 1
		}
	}
	return lowest
}

// logResolution is added to times before taking their logarithm for the width of a cell.
const logResolution = 8
