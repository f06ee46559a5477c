package outlier

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/stats"
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
	spans []span // in order of time; their tails may overlap
}

// span is a mode and its tails.
type span struct {
	low, high         int64 // times from here to here are normal
	nearLow, nearHigh int64 // beyond these they may turn out not to be
	weak              bool  // it may turn out to be none
	peak              float64
	down, up          tail
}

// tail is one side of a mode. At a distance of flat from the peak the logarithm of
// the density has fallen by little; from there on it falls with the distance to the
// power of shape, by level at edge: 1 is the shape of a heavy tail, 2 that of a normal
// distribution. Most modes have a peak, not a plateau, so that flat and little are 0.
type tail struct{ flat, little, edge, level, shape float64 }

// decay is by how much the logarithm of the density has fallen at a distance.
func (t *tail) decay(distance float64) float64 {
	if distance < t.flat {
		return t.little * distance / t.flat
	}
	return t.little + t.level*math.Pow((distance-t.flat)/t.edge, t.shape)
}

// reach is the distance at which it has fallen so far.
func (t *tail) reach(decay float64) float64 {
	return t.flat + t.edge*math.Pow(max((decay-t.little)/t.level, 1), 1/t.shape)
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
	// shrinkage is how many times weigh as much as the assumption that tails are
	// heavy.
	shrinkage = 500
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
	// A span of time without that phase has at most hardlyAny of them.
	maxPhase, hardlyAny = 0.03, 0.002
	// Where so many more times lie out in a tail than can be expected that no more
	// than falseShare of them can be normal, the limit is drawn closer, but not
	// below closest. It needs a tail that is known to be light.
	falseShare, closest, lightTail = 0.05, 8.5, 1.3
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
// be an outlier: its density is that of the peak divided by a power of ten.
func newModal(learned *Model, decades float64, halfLife int64) *modal {
	h := &learned.Hist
	f := finder{points: make([]point, 0, 64), target: decades * math.Ln10, line: learned.timeline()}
	for bin, n := range h.Bins() {
		p := point{v: stats.BinMiddle(bin), low: float64(stats.BinLow(bin)), high: float64(stats.BinLow(bin+1) - 1), n: float64(n)}
		p.x = position(p.v)
		f.points = append(f.points, p)
		f.n += p.n
	}
	if weights := f.remembered(learned, halfLife); weights != nil {
		f.weigh(weights)
	}
	f.far = 2 * h.Quantile(max(0.5, min(0.99, 1-5/float64(h.Total()))))
	f.width = max(f.shortestHalf()/4, 1.0/128)
	f.estimate()
	modes := f.modes()
	m := &modal{spans: make([]span, 0, len(modes))}
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
	return m
}

// remembered returns, for each coarse bin, how much of its times counts when what
// was learned counts half after a time; nil: all. It depends on the times alone, not
// on when it is asked for: the last of them is now.
func (f *finder) remembered(m *Model, halfLife int64) map[int]float64 {
	spans := f.line.Spans()
	if halfLife == 0 || len(spans) < 2 {
		return nil
	}
	ages := make([]float64, len(spans)) // in half-lives
	for i := range spans {
		ages[i] = float64(spans[len(spans)-1].From-spans[i].From) / float64(halfLife)
	}
	slower(spans, ages, float64(m.Count()-f.line.Total()))
	if ages[0] < 1.0/8 {
		return nil // nothing to speak of
	}
	type share struct{ counts, all float64 }
	shares := make(map[int]*share)
	for i := range spans {
		weight := math.Exp2(-ages[i])
		from, to := spans[i].Range()
		for bin := from; bin < to; bin++ {
			n := float64(spans[i].Count(bin))
			if n == 0 {
				continue
			}
			s := shares[bin]
			if s == nil {
				s = new(share)
				shares[bin] = s
			}
			s.counts += n * weight
			s.all += n
		}
	}
	// What an earlier run learned is as old as the beginning.
	oldest := math.Exp2(-ages[0])
	learned := make(map[int]float64)
	for bin, n := range m.Hist.Bins() {
		learned[stats.CoarseBinOf(int64(stats.BinMiddle(bin)))] += float64(n)
	}
	weights := make(map[int]float64, len(learned))
	for bin, all := range learned {
		s := shares[bin]
		if s == nil {
			s = new(share)
		}
		weights[bin] = min(1, (s.counts+max(all-s.all, 0)*oldest)/all)
	}
	return weights
}

// slower halves the ages, so that less is forgotten, until enough is left to judge
// by: a function that is rarely called is not forgotten from one call to the next.
// before is how much was learned before all spans.
func slower(spans []stats.Span, ages []float64, before float64) {
	for ages[0] >= 1.0/8 {
		left := before * math.Exp2(-ages[0])
		for i := range spans {
			left += float64(spans[i].Total) * math.Exp2(-ages[i])
		}
		if left >= weakTimes {
			return
		}
		for i := range ages {
			ages[i] /= 2
		}
	}
}

// weigh counts only what is remembered.
func (f *finder) weigh(weights map[int]float64) {
	left := 0.0
	for _, p := range f.points {
		left += p.n * weights[coarseBin(p.v)]
	}
	if left < minTimes {
		return // the timeline is that of something else
	}
	f.n = left
	for i := range f.points {
		p := &f.points[i]
		p.n *= weights[coarseBin(p.v)]
	}
}

// finder looks for modes.
type finder struct {
	points []point
	line   *stats.Timeline
	n      float64
	target float64
	width  float64 // half the window in which times are counted for a density
	edge   float64 // density at which modes end, if it rests on enough times
	far    float64 // a time that is worth a second look, whatever tails are thought to be
}

// shortestHalf is the length of the shortest interval with half of all times.
func (f *finder) shortestHalf() float64 {
	shortest, sum, j := math.Inf(1), 0.0, 0
	for i := range f.points {
		for ; j < len(f.points) && sum < f.n/2; j++ {
			sum += f.points[j].n
		}
		if sum < f.n/2 {
			break
		}
		shortest = min(shortest, f.points[j-1].x-f.points[i].x)
		sum -= f.points[i].n
	}
	return shortest
}

// window is half the length in which times around v are counted.
func (f *finder) window(v float64) float64 { return max(f.width, tick/(v+resolution)) }

// estimate finds the density at all points, and where modes end.
func (f *finder) estimate() {
	lo, hi, sum, peak := 0, 0, 0.0, 0.0
	for i := range f.points {
		p := &f.points[i]
		w := f.window(p.v)
		for ; hi < len(f.points) && f.points[hi].x <= p.x+w; hi++ {
			sum += f.points[hi].n
		}
		for ; f.points[lo].x < p.x-w; lo++ {
			sum -= f.points[lo].n
		}
		for hi > i+1 && f.points[hi-1].x > p.x+w { // windows become shorter
			hi--
			sum -= f.points[hi].n
		}
		p.density = sum / (2 * w * f.n)
		peak = max(peak, p.density)
	}
	order := make([]int32, len(f.points))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(f.points[b].density, f.points[a].density), cmp.Compare(a, b))
	})
	covered := 0.0
	for _, i := range order {
		f.edge = f.points[i].density
		if covered += f.points[i].n; covered >= coverage*f.n {
			break
		}
	}
	f.edge = min(f.edge, edgeDensity*peak)
}

// least is the lowest density around v that rests on enough times.
func (f *finder) least(v float64) float64 { return edgeTimes / (2 * f.window(v) * f.n) }

// edgeAt is the density at which modes end around v.
func (f *finder) edgeAt(v float64) float64 { return max(f.edge, f.least(v)) }

// region is a row of points, from the first to the last, in which times are dense.
type region struct {
	first, last, peak int
	n                 float64 // how many times are in it
	phase             bool    // it is that of a phase of the run, and not of many times
}

// modes returns the dense regions that have enough times, in order.
func (f *finder) modes() (modes []region) {
	for i := 0; i < len(f.points); {
		if !f.dense(i) {
			i++
			continue
		}
		r := f.region(i)
		if r.n < 2*maxPhase*f.n {
			r.phase = f.passing(coarseBin(f.points[r.first].low), coarseBin(f.points[r.last].high))
		}
		if r.n >= max(minMode*f.n, minTimes) && (r.n >= maxPhase*f.n || !r.phase) {
			modes = append(modes, r)
		}
		i = r.last + 1
	}
	return modes
}

// dense reports whether a point can be part of a mode.
func (f *finder) dense(i int) bool { return f.points[i].density >= f.edgeAt(f.points[i].v) }

// follows reports whether there is no gap before a point.
func (f *finder) follows(i int) bool {
	return f.points[i].x-f.points[i-1].x <= 2*f.window(f.points[i].v)
}

// region returns the dense region that begins at a point.
func (f *finder) region(first int) region {
	r := region{first: first, last: first, peak: first, n: f.points[first].n}
	for i := first + 1; i < len(f.points) && f.dense(i) && f.follows(i); i++ {
		r.last = i
		r.n += f.points[i].n
		if f.points[i].density > f.points[r.peak].density {
			r.peak = i
		}
	}
	return r
}

// widen adds to a mode what is dense beside its own peak, which may be much lower
// than the highest, between the points from and to. It returns the density at its
// ends.
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

// span makes a span of a mode; others end before the point from and begin at to.
func (f *finder) span(r region, from, to int) span {
	edge := f.widen(&r, from, to)
	p := f.points
	peak := &p[r.peak]
	s := span{
		peak: peak.x, weak: r.n < weakTimes || r.phase,
		up: f.upTail(&r, edge), down: f.downTail(&r, edge, func(p *point) float64 { return p.x }),
	}
	s.nearHigh = whole(timeAt(s.peak + s.up.reach(f.near(&s.up))))
	s.nearLow = whole(timeAt(s.peak-s.down.reach(f.near(&s.down)))) - 1
	high := max(timeAt(s.peak+s.up.reach(f.closest(&s, r.last, to))), p[r.last].high+leastLoss)
	s.high = whole(f.bridge(r.last, high))
	linear := f.downTail(&r, edge, func(p *point) float64 { return p.v / peak.v })
	s.low = whole(min(timeAt(s.peak-s.down.reach(f.target)), peak.v*(1-linear.reach(f.target)), p[r.first].low-leastLoss))
	look := whole(max(p[r.last].high+leastLoss, f.far)) // tails that rest on few times come and go
	s.nearHigh, s.nearLow = min(s.nearHigh, s.high, look), max(s.nearLow, s.low, 0)
	// Of a bin all times are surely normal, or none.
	if bin := stats.BinOf(s.nearHigh); s.nearHigh < stats.BinLow(bin+1)-1 {
		s.nearHigh = stats.BinLow(bin) - 1
	}
	if bin := stats.BinOf(s.nearLow); s.nearLow > stats.BinLow(bin) {
		s.nearLow = stats.BinLow(bin + 1)
	}
	return s
}

// whole is a time in whole microseconds; one beyond all times is the longest.
func whole(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// upTail is the upper tail of a mode that ends at a density of edge. Where the mode
// is a plateau, how the density falls behind it tells more than how it falls from the
// peak on.
func (f *finder) upTail(r *region, edge float64) tail {
	p, peak := f.points, &f.points[r.peak]
	level := math.Log(peak.density / edge)
	outermost := func(density float64) float64 {
		i := r.last
		for p[i].density < density {
			i--
		}
		return p[i].x - peak.x
	}
	end := p[r.last].x - peak.x
	t := f.tail(end, outermost(math.Sqrt(peak.density*edge)), level)
	flat := outermost(peak.density / 2)
	if flat <= plateau*end || level < 1+math.Ln2 || f.n < 2*shrinkage {
		return t
	}
	behind := f.tail(end-flat, outermost(math.Sqrt(peak.density/2*edge))-flat, level-math.Ln2)
	behind.flat, behind.little = flat, math.Ln2
	if behind.reach(f.target) < t.reach(f.target) {
		return behind
	}
	return t
}

// downTail is the lower tail of a mode, in the given measure of times. In that of the
// logarithm times of a wide normal distribution are further out than they look.
func (f *finder) downTail(r *region, edge float64, measure func(*point) float64) tail {
	p, peak := f.points, &f.points[r.peak]
	half, density := r.first, math.Sqrt(peak.density*edge)
	for p[half].density < density {
		half++
	}
	top := measure(peak)
	return f.tail(top-measure(&p[r.first]), top-measure(&p[half]), math.Log(peak.density/edge))
}

// tail is a side of a mode whose density has fallen by level at edge, and by half
// of that at half.
func (f *finder) tail(edge, half, level float64) tail {
	edge = max(edge, f.width)
	half = min(max(half, f.width/2), edge)
	shape := math.Ln2 / math.Log(max(edge/half, 1.0001))
	shape = min(max(shape, 0.5), 2)
	return tail{edge: edge, level: max(level, 0.7), shape: 1 + (shape-1)*f.n/(f.n+shrinkage)}
}

// near is how far the density must have fallen for a time that may turn out to be
// an outlier when more are known.
func (f *finder) near(t *tail) float64 {
	known := f.n / (f.n + 2*shrinkage)
	if t.shape >= lightTail {
		return closeBy + (closest-0.5-closeBy)*known
	}
	return closeBy + max(f.target-1.5-closeBy, 0)*known
}

// closest is how far the density must have fallen above a mode for an outlier. What
// lies from the next mode on is not in its tail.
func (f *finder) closest(s *span, last, next int) float64 {
	if s.up.shape < lightTail || f.target <= closest {
		return f.target
	}
	limit, above, k := f.target, 0.0, next
	for t := f.target; t >= closest; t -= 0.5 {
		x := s.peak + s.up.reach(t)
		for ; k > last+1 && f.points[k-1].x > x; k-- {
			above += f.points[k-1].n
		}
		if f.n*math.Exp(-t) > falseShare*above {
			break
		}
		limit = t
	}
	return limit
}

// bridge moves the upper limit of a mode over times that follow each other
// without a gap and are only a little longer.
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

// limit has no more outliers above the modes than there can be.
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
	// The coarse bin of the limit holds normal times, too.
	if many && (above > maxPhase*f.n || !f.passing(stats.CoarseBinOf(top)+1, math.MaxInt)) {
		last := &m.spans[len(m.spans)-1]
		last.high = max(last.high, whole(farAbove*f.quantile(0.99)))
	}
}

// quantile returns a time below or at which the share q of all lies, to the
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

func coarseBin(v float64) int { return stats.CoarseBinOf(int64(v)) }

// passing reports whether the times from one coarse bin to another belong to a phase
// of the run: there are some, but in most of its spans hardly any.
func (f *finder) passing(first, last int) bool {
	spans, with := 0, 0
	for _, s := range f.line.Spans() {
		if s.Total < spanCalls {
			continue
		}
		spans++
		n := uint64(0)
		from, to := s.Range()
		for bin := max(first, from); bin < to && bin <= last; bin++ {
			n += s.Count(bin)
		}
		if float64(n) > hardlyAny*float64(s.Total) {
			with++
		}
	}
	return spans >= 4 && with > 0 && 2*with <= spans
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

// slowOnly makes all times normal that are not longer than those of all modes.
func (m *modal) slowOnly() {
	for i := range m.spans {
		m.spans[i].low, m.spans[i].nearLow = 0, 0
	}
}

// maxDecades is the highest score.
const maxDecades = 100
