package outlier

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/sample"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Verdict is the judgment of a time.
type Verdict uint8

// The verdicts.
const (
	// NotJudged means that the model has too few samples.
	NotJudged Verdict = iota
	// Normal means that the time is usual.
	Normal
	// Candidate means that the time is normal, but may be an outlier with more samples.
	Candidate
	// Recurring means that the time is unusual but recurs in at least one call in a hundred: a slow mode.
	Recurring
	// Outlier means that the time is unusual.
	Outlier
	// Excess means that the call made far more calls than usual.
	Excess
)

// Judge judges the times of one function. It is immutable and safe for concurrent use. To avoid dynamic calls of its detector,
// it caches which bins are normal, as nearly all times are.
type Judge struct {
	detector detector
	hist     *stats.Histogram
	enough   bool
	work     work
	unit     trace.Unit

	// suspect has an element for each bin from first. It is false if all times in the bin are normal. Times in other bins
	// are suspect.
	suspect []bool
	first   int

	low, high int64 // see NormalTimes
}

// detector judges the times of a function. There is one for each Algorithm.
type detector interface {
	// judge returns the score of a time ≥ 0, and the verdict.
	judge(v int64) (float64, Verdict)
	// oddness orders times from typical to odd.
	oddness(v int64) float64
	// ranges returns the usual ranges, disjoint and in order, or nil if the detector has none.
	ranges() []Range
	// decades returns the rarity of a time as a power of ten, or 0 if the detector does not estimate it.
	decades(v int64) float64
	// sample returns the share of recurring calls to keep.
	sample() float64
	// params returns the algo_params of the provenance schema.
	params() any
}

// newDetector creates the detector of a function. Without enough samples, only its params are valid.
func (r *Rules) newDetector(name string, m *Model, enough bool) detector {
	threshold, self := r.Threshold(name), uint64(1)
	if r.cfg.IncludeSelf {
		self = 0
	}
	switch r.cfg.Algorithm {
	case SSTD:
		return newSSTD(m, threshold, self, enough)
	case HBOS:
		return newHBOS(&m.Hist, threshold, self, enough)
	case COPOD:
		return newCOPOD(&m.Hist, threshold, self, enough)
	}
	if !enough {
		return &tail{hist: &m.Hist}
	}
	return newTail(&m.Hist, threshold, r.cfg.LeastLoss)
}

// NewJudge creates the judge of a function from its model, which must not change while the judge is in use.
func (r *Rules) NewJudge(name string, m *Model) *Judge {
	enough := m.Count() >= uint64(r.cfg.MinSamples)
	j := &Judge{detector: r.newDetector(name, m, enough), hist: &m.Hist, enough: enough, unit: r.cfg.Unit.Canonical()}
	j.work.most = math.MaxUint32
	if !enough {
		return j
	}
	if r.cfg.Algorithm == Tail && m.Made.Total() >= uint64(r.cfg.MinSamples) {
		j.work = newWork(&m.Made, r.Threshold(name), r.cfg.LeastLoss)
	}
	first, last := binsOf(&m.Hist)
	j.first, j.suspect = first, make([]bool, last-first+1)
	for i := range j.suspect {
		bin := first + i
		if m.Hist.Count(bin) == 0 { // empty bins are rare, so a full judgment costs little
			j.suspect[i] = true
			continue
		}
		// Scores are highest at the ends of a bin.
		j.suspect[i] = verdict(j.detector, stats.BinLow(bin)) != Normal || verdict(j.detector, stats.BinLow(bin+1)-1) != Normal
	}
	j.findNormalTimes()
	return j
}

// verdict returns the verdict of a detector. It takes a tail less time than a score.
func verdict(d detector, v int64) Verdict {
	if t, ok := d.(*tail); ok {
		return t.verdict(v)
	}
	_, verdict := d.judge(v)
	return verdict
}

// findNormalTimes finds the longest sequence of times in normal bins: adjacent bins with most times and no suspect one.
func (j *Judge) findNormalTimes() {
	most, n, from := uint64(0), uint64(0), 0
	for i, suspect := range j.suspect {
		if suspect {
			n, from = 0, i+1
			continue
		}
		if n += j.hist.Count(j.first + i); n > most {
			most, j.low, j.high = n, stats.BinLow(j.first+from), stats.BinLow(j.first+i+1)
		}
	}
}

// NormalTimes returns a range of times, from low to below high, of which none is Suspect and which includes most of the learned
// times. It may be empty.
func (j *Judge) NormalTimes() (low, high int64) { return j.low, j.high }

// NewRareJudge creates the judge of a function with too few samples whose caller was called calls times, usually without calling
// it. The judge flags times of at least least ticks.
func (r *Rules) NewRareJudge(name string, m *Model, calls uint64, least int64) *Judge {
	h := m.Hist.Clone()
	h.AddBin(stats.BinOf(0), calls-min(calls, h.Total()))
	t := &tail{hist: &h, threshold: r.Threshold(name), early: math.MaxInt64}
	limit := max(least, r.cfg.LeastLoss)
	up, _ := newQuantiles(&h).fit(1, startShare, &estimators[0])
	t.modes = []mode{{high: limit, nearHigh: limit, up: up}}
	j := &Judge{detector: t, hist: &h, enough: true, unit: r.cfg.Unit.Canonical()}
	j.work.most = math.MaxUint32
	return j
}

// binsOf returns the first and the last bin with values.
func binsOf(h *stats.Histogram) (first, last int) {
	first = -1
	for bin := range h.Bins() {
		if first < 0 {
			first = bin
		}
		last = bin
	}
	return first, last
}

// Suspect reports whether a time may be other than normal. It is cheap, and false for nearly all times.
func (j *Judge) Suspect(v int64) bool {
	i := stats.BinOf(v) - j.first
	return uint(i) >= uint(len(j.suspect)) || j.suspect[i]
}

// Judge returns the score of a time, which is higher for rarer times, and the verdict. The score of a time that is not judged
// is -1.
func (j *Judge) Judge(v int64) (float64, Verdict) {
	if !j.enough {
		return -1, NotJudged
	}
	return j.detector.judge(max(v, 0)) // as Learn does
}

// Oddness orders times from typical to odd, at less cost than scores. The order is that of the scores or, if many times have the
// same score, that of frequency. Without enough samples it is 0.
func (j *Judge) Oddness(v int64) float64 {
	if !j.enough {
		return 0
	}
	return j.detector.oddness(v)
}

// Keep reports whether to keep a call with a verdict. It is true for outliers. For recurring calls and those with excess work it is
// true, or true for a sample if there are many. number identifies the call.
func (j *Judge) Keep(verdict Verdict, number uint64) bool {
	return sample.Has(j.share(verdict), number)
}

// MayKeep reports whether Keep may be true when more calls are learned. More calls make the sample smaller, unless the limit rises
// above some of the slow mode.
func (j *Judge) MayKeep(verdict Verdict, number uint64) bool {
	return sample.Has(sampleSlack*j.share(verdict), number)
}

// share returns the share of calls with a verdict to keep.
func (j *Judge) share(verdict Verdict) float64 {
	switch verdict {
	case Recurring:
		return j.Kept()
	case Excess:
		return j.work.sample
	}
	return 1
}

// Kept returns the share of recurring calls to keep.
func (j *Judge) Kept() float64 { return j.detector.sample() }

// SlowMode returns the recurring times, to the precision of a bin, without those in others, which are parts of the model.
func (j *Judge) SlowMode(others []*Model) (times stats.Histogram) {
	t, ok := j.detector.(*tail)
	if !ok || t.slow == nil {
		return times
	}
	for bin, n := range j.hist.Bins() {
		if _, verdict := t.judge(int64(stats.BinMiddle(bin))); verdict != Recurring {
			continue
		}
		for _, o := range others {
			n -= min(n, o.Hist.Count(bin))
		}
		times.AddBin(bin, n)
	}
	return times
}

// ShareFrom returns the share of the learned calls that took about as long as v or longer.
func (j *Judge) ShareFrom(v int64) float64 {
	return float64(j.hist.CountFrom(stats.BinOf(v))) / float64(max(1, j.hist.Total()))
}

// Chance returns the probability that a call takes as long as v or longer: the share of the learned calls that did or, if less,
// the prediction from the bulk of the times, because the longest times may include trouble.
func (j *Judge) Chance(v int64) float64 {
	share := j.ShareFrom(v)
	if t, ok := j.detector.(*tail); ok && len(t.modes) > 0 {
		if up := &t.modes[len(t.modes)-1].up; float64(v) > up.from {
			return min(share, math.Pow(10, -up.decades(float64(v))))
		}
	}
	return share
}

// Enough reports whether the model has enough samples to judge.
func (j *Judge) Enough() bool { return j.enough }

// MarshalJSON returns the model as algo_params of the provenance schema, with tick_ns if times are not in microseconds.
func (j *Judge) MarshalJSON() ([]byte, error) {
	params := j.detector.params()
	if p, ok := params.(histogramParams); ok && j.work.tail != nil {
		p.Made, p.MostMade = madeCounts(j.work.tail.hist), j.work.most
		params = p
	}
	b, err := json.Marshal(params)
	if err != nil || j.unit == 0 {
		return b, err
	}
	return fmt.Appendf(nil, `{"tick_ns":%d,%s`, j.unit, b[1:]), nil
}

// histogramParams are the algo_params of detectors that judge by a histogram.
type histogramParams struct {
	Histogram *stats.Histogram `json:"histogram"`
	Threshold float64          `json:"internal_global_threshold"`
	Normal    [][2]int64       `json:"normal,omitempty"` // tail: from, to
	// Made and the greatest normal number of calls are set by tail if calls of the function made far more calls than usual.
	// An element of Made is the number of calls that made from and to so many calls.
	Made     [][3]uint64 `json:"calls_made,omitempty"`
	MostMade uint32      `json:"most_calls,omitempty"`
}

// plain is embedded in detectors without ranges, decades and slow modes.
type plain struct{}

func (plain) ranges() []Range       { return nil }
func (plain) decades(int64) float64 { return 0 }
func (plain) sample() float64       { return 1 }

// emptyShare is the share of values in an empty bin. Its logarithm is the highest score.
const emptyShare = 78.88e-32

// floorScore keeps detectors from treating all values as rare if they are equal.
var floorScore = math.Log2(1.00001)

// rarity returns the score of a share of all values.
func rarity(share float64) float64 { return -math.Log2(share + emptyShare) }
