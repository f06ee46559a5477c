package outlier

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Verdict is what a Judge thinks of a time.
type Verdict uint8

// The verdicts.
const (
	// NotJudged: too little is known of the function.
	NotJudged Verdict = iota
	// Normal: it fits.
	Normal
	// Candidate: it fits, but so closely that with more knowledge of the
	// function it may not.
	Candidate
	// Outlier: it does not fit.
	Outlier
)

// Judge decides about the times of one function. It does not change and may
// be used by many goroutines.
type Judge struct {
	algorithm Algorithm
	enough    bool
	self      uint64 // what the judged time contributed itself: 1, or 0 to leave it in
	threshold float64

	// hbos and copod
	hist  *stats.Histogram
	limit float64 // the score from which on a time is an outlier
	rare  uint64  // hbos: and the highest count of its bin
	apart int     // hbos: or the first bin of what is far from all others
	afar  int     // hbos: the same for candidates
	skew  float64
	below []float64 // values below each bin from first on, and one beyond
	first int

	modal *modal

	// sstd
	stats   stats.RunStats
	clipped stats.RunStats // without outliers; empty when there are none
	most    float64        // bins that begin above it are left out of clipped
	// The standard deviation of what the clock cannot tell apart.
	resolution float64

	// One entry for each bin from first on: whether a time in it can be
	// anything but normal. Beyond its ends all can.
	suspect []bool
}

// emptyShare stands for the share of values in an empty bin: its logarithm
// is the highest score.
const emptyShare = 78.88e-32

// floorScore keeps models in which all values are alike from calling them all
// rare.
var floorScore = math.Log2(1.00001)

// NewJudge makes the judge of a function from what was learned of it. The model
// must not change while the judge is in use.
func (r *Rules) NewJudge(name string, m *Model) *Judge {
	j := &Judge{
		algorithm: r.cfg.Algorithm, threshold: r.Threshold(name), hist: &m.Hist, self: 1,
		enough: m.Count() >= uint64(r.cfg.MinSamples),
	}
	if r.cfg.IncludeSelf {
		j.self = 0
	}
	if j.algorithm == SSTD {
		j.stats = m.Stats.RunStats()
	}
	if !j.enough {
		return j
	}
	last := 0
	j.first = -1
	for bin := range m.Hist.Bins() {
		if j.first < 0 {
			j.first = bin
		}
		last = bin
	}
	switch j.algorithm {
	case SSTD:
		if !r.cfg.IncludeSelf {
			j.resolution = 1 / math.Sqrt(12)
			j.clip()
		}
	case HBOS:
		j.prepareHBOS()
	case COPOD:
		j.prepareCOPOD(last)
	case Modal:
		j.modal = newModal(m, j.threshold, r.cfg.HalfLife, r.cfg.SlowOnly != nil && r.cfg.SlowOnly(name))
	}
	j.suspect = make([]bool, last-j.first+1)
	for i := range j.suspect {
		bin := j.first + i
		if m.Hist.Count(bin) == 0 { // rarely asked for, and then worth a full look
			j.suspect[i] = true
			continue
		}
		// Scores rise towards the ends of a bin, never inside it.
		_, verdict := j.verdict(stats.BinLow(bin))
		if verdict == Normal && j.algorithm != HBOS { // which has one score for a bin
			_, verdict = j.verdict(stats.BinLow(bin+1) - 1)
		}
		j.suspect[i] = verdict != Normal
	}
	return j
}

// Suspect reports whether a time can be anything but normal. It is cheap, and
// for nearly all times it is all that is needed.
func (j *Judge) Suspect(v int64) bool {
	i := stats.BinOf(v) - j.first
	return uint(i) >= uint(len(j.suspect)) || j.suspect[i]
}

// Judge returns the score of a time, the higher the rarer, and the verdict.
// The score of what is not judged is -1.
func (j *Judge) Judge(v int64) (float64, Verdict) {
	if !j.enough {
		return -1, NotJudged
	}
	return j.verdict(v)
}

// Oddness orders times from typical to odd, at less cost than their scores: as these
// do, or, where many times have the same, by how often they occur.
func (j *Judge) Oddness(v int64) float64 {
	switch j.algorithm {
	case SSTD:
		return math.Abs(float64(v) - j.stats.Mean)
	case HBOS, Modal:
		return -float64(j.hist.Count(stats.BinOf(v)))
	}
	return j.tail(v, 0)
}

// Enough reports whether the model suffices to judge.
func (j *Judge) Enough() bool { return j.enough }

func (j *Judge) verdict(v int64) (score float64, verdict Verdict) {
	v = max(v, 0) // as it was learned
	switch j.algorithm {
	case SSTD:
		return j.sstd(v)
	case HBOS:
		return j.hbos(v)
	case Modal:
		return j.modal.judge(v)
	}
	return j.copod(v)
}

// sstd counts standard deviations from the mean.
func (j *Judge) sstd(v int64) (float64, Verdict) {
	s := j.stats
	if j.clipped.N > 0 {
		s = j.clipped
	}
	bin := stats.BinOf(v)
	if j.self > 0 && j.hist.Count(bin) > 0 && float64(stats.BinLow(bin)) <= j.most {
		s.Remove(float64(v))
	}
	sigma := max(s.Stddev(), j.resolution)
	d := math.Abs(float64(v) - s.Mean)
	score := d / max(sigma, 1e-10)
	switch {
	case d > float64(j.threshold*sigma):
		return score, Outlier
	case d > float64(nearSSTD*float64(j.threshold*sigma)):
		return score, Candidate
	}
	return score, Normal
}

// clip leaves single values out that make up more than a share of all squared
// deviations: no value alone may define what counts as normal.
func (j *Judge) clip() {
	j.most = math.Inf(1)
	s := j.stats
	for j.leaveOut(&s, poisonShare) { // behind one poison another may hide
	}
	j.leaveOut(&s, maxShare)
	if s.N < j.stats.N {
		j.clipped = s
	}
}

// leaveOut takes values out of s that alone make up more than a share of its
// squared deviations, and reports whether there were any.
func (j *Judge) leaveOut(s *stats.RunStats, share float64) bool {
	most := s.Mean + math.Sqrt(float64(share*s.M2))
	kept := j.hist.MomentsBelow(most)
	if kept.N == s.N {
		return false
	}
	for bin, n := range j.hist.Bins() {
		if float64(stats.BinLow(bin)) > most {
			break
		}
		// A value may be anywhere in its bin.
		width := float64(stats.BinLow(bin+1) - stats.BinLow(bin))
		kept.M2 += float64(n) * (float64(width*width) - 1) / 12
	}
	*s, j.most = kept, most
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

// rarity is the score of a share of all values.
func rarity(share float64) float64 { return -math.Log2(share + emptyShare) }

func (j *Judge) prepareHBOS() {
	low, high := math.Inf(1), math.Inf(-1)
	total := float64(j.hist.Total())
	for _, n := range j.hist.Bins() {
		s := rarity(float64(n) / total)
		low, high = min(low, s), max(high, s)
	}
	j.limit = max(low+float64(j.threshold*(high-low)), floorScore)
	j.rare, j.apart, j.afar = math.MaxUint64, stats.NumBins, stats.NumBins
	if j.self > 0 {
		j.guard()
		j.separate()
	}
}

// separate finds what lies above all others, behind a gap of empty bins. If it is
// no more than the share that is not normal it is anomalous even when it comes
// again and again, so that its bin is not rare any more.
func (j *Judge) separate() {
	total := float64(j.hist.Total())
	above, last := total, stats.NumBins
	for bin, n := range j.hist.Bins() {
		if bin-last > gapBins {
			if above <= float64((1-j.threshold)*total) {
				j.apart = min(j.apart, bin)
			}
			if above <= float64(notRare*(1-j.threshold)*total) {
				j.afar = min(j.afar, bin)
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
func (j *Judge) guard() {
	var counts []uint64
	for _, n := range j.hist.Bins() {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	allowed := max(1, float64(notRare*(1-j.threshold)*float64(j.hist.Total())))
	sum := 0.0
	j.rare = 0
	for i, n := range counts {
		sum += float64(n)
		if sum > allowed {
			return
		}
		if i+1 == len(counts) || counts[i+1] > n {
			j.rare = n
		}
	}
}

// notRare is how much larger than the share that is not normal that share of
// times may be.
const notRare = 5

// hbos scores a time by how few others share its bin.
func (j *Judge) hbos(v int64) (float64, Verdict) {
	bin := stats.BinOf(v)
	n := j.hist.Count(bin)
	total := j.hist.Total()
	rare := n <= j.rare
	if n > 0 {
		n -= j.self
		total -= j.self
	}
	score := rarity(float64(n) / float64(max(total, 1)))
	switch {
	case score >= j.limit && rare || bin >= j.apart:
		return score, Outlier
	case score >= j.limit || n <= nearHBOS || bin >= j.afar:
		return score, Candidate
	}
	return score, Normal
}

// nearHBOS is the number of others in its bin up to which a time is a
// candidate: so few may turn out to be few in the end.
const nearHBOS = 3

func (j *Judge) prepareCOPOD(last int) {
	sum := 0.0
	for bin := j.first; bin <= last+1; bin++ {
		j.below = append(j.below, sum)
		sum += float64(j.hist.Count(bin))
	}
	m := j.hist.Moments()
	if m.N > 1 && m.M2 > 0 {
		j.skew = m.N / (m.N - 1) * (m.M3 / m.N) / math.Pow(m.M2/m.N, 1.5)
	}
	low, high := rarity(0), -rarity(0)
	for bin := range j.hist.Bins() {
		s := j.tail(int64(stats.BinMiddle(bin)), 0)
		low, high = min(low, s), max(high, s)
	}
	j.limit = max(low+float64(j.threshold*(high-low)), floorScore)
}

// copod scores a time by how far out it lies in the tails.
func (j *Judge) copod(v int64) (float64, Verdict) {
	score := j.tail(v, float64(j.self))
	switch {
	case score >= j.limit:
		return score, Outlier
	case score >= float64(nearCOPOD*j.limit):
		return score, Candidate
	}
	return score, Normal
}

const nearCOPOD = 0.9

// tail is the score of v among all other values.
func (j *Judge) tail(v int64, self float64) float64 {
	total := float64(j.hist.Total())
	bin := stats.BinOf(v)
	at, below := 0.0, 0.0
	switch i := bin - j.first; {
	case i < 0:
	case i >= len(j.below):
		below = total
	default:
		at, below = float64(j.hist.Count(bin)), j.below[i]
	}
	if at > 0 {
		at -= self
		total -= self
	}
	share := func(n float64) float64 { return min(1, (n+1)/max(total, 1)) }
	// What shares the bin of v lies on both sides of it, so that times that
	// are all alike are in no tail.
	left, right := below+at, total-below
	l, r := rarity(0), rarity(0)
	if left > 0 {
		l = rarity(share(left))
	}
	if right > 0 {
		r = rarity(share(right))
	}
	sign := func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	}
	return max((l+r)/2, -sign(j.skew-1)*l+sign(j.skew+1)*r)
}

// MarshalJSON writes the model as the schema's algo_params.
func (j *Judge) MarshalJSON() ([]byte, error) {
	if j.algorithm == SSTD {
		return json.Marshal(j.stats)
	}
	out := struct {
		Histogram *stats.Histogram `json:"histogram"`
		Threshold float64          `json:"internal_global_threshold"`
		Normal    [][2]int64       `json:"normal,omitempty"` // modal: from, to
	}{Histogram: j.hist, Threshold: j.limit}
	if j.modal != nil {
		out.Threshold = j.threshold
		for i := range j.modal.spans {
			out.Normal = append(out.Normal, [2]int64{max(j.modal.spans[i].low, 0), j.modal.spans[i].high})
		}
	}
	return json.Marshal(out)
}
