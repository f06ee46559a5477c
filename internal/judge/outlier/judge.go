package outlier

import (
	"encoding/json"
	"math"

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
// be used by many goroutines. What its detector thinks of each bin is looked up
// first, without a dynamic call: nearly all times are normal.
type Judge struct {
	detector detector
	hist     *stats.Histogram
	enough   bool

	// One entry for each bin from first on: whether a time in it can be
	// anything but normal. Beyond its ends all can.
	suspect []bool
	first   int
}

// detector judges the times of a function. There is one for each Algorithm.
type detector interface {
	// judge returns the score of a time that is not negative, and the verdict.
	judge(v int64) (float64, Verdict)
	// oddness orders times from typical to odd.
	oddness(v int64) float64
	// ranges returns where times usually lie, in order and apart; nil if the
	// detector does not tell.
	ranges() []Range
	// decades returns how rare a time is as a power of ten; 0 if the detector does
	// not tell.
	decades(v int64) float64
	// params returns what the schema stores of the model as algo_params.
	params() any
}

// newDetector makes the detector of a function. If too little is known it serves
// for params alone.
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
		return &modal{hist: &m.Hist}
	}
	return newModal(m, threshold, r.cfg.HalfLife, r.cfg.SlowOnly != nil && r.cfg.SlowOnly(name))
}

// NewJudge makes the judge of a function from what was learned of it. The model
// must not change while the judge is in use.
func (r *Rules) NewJudge(name string, m *Model) *Judge {
	enough := m.Count() >= uint64(r.cfg.MinSamples)
	j := &Judge{detector: r.newDetector(name, m, enough), hist: &m.Hist, enough: enough}
	if !enough {
		return j
	}
	first, last := binsOf(&m.Hist)
	j.first, j.suspect = first, make([]bool, last-first+1)
	for i := range j.suspect {
		bin := first + i
		if m.Hist.Count(bin) == 0 { // rarely asked for, and then worth a full look
			j.suspect[i] = true
			continue
		}
		// Scores rise towards the ends of a bin, never inside it.
		_, verdict := j.detector.judge(stats.BinLow(bin))
		if verdict == Normal {
			_, verdict = j.detector.judge(stats.BinLow(bin+1) - 1)
		}
		j.suspect[i] = verdict != Normal
	}
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
	return j.detector.judge(max(v, 0)) // as it was learned
}

// Oddness orders times from typical to odd, at less cost than their scores: as these
// do, or, where many times have the same, by how often they occur. Without a model
// that suffices all are alike.
func (j *Judge) Oddness(v int64) float64 {
	if !j.enough {
		return 0
	}
	return j.detector.oddness(v)
}

// Enough reports whether the model suffices to judge.
func (j *Judge) Enough() bool { return j.enough }

// MarshalJSON writes the model as the schema's algo_params.
func (j *Judge) MarshalJSON() ([]byte, error) { return json.Marshal(j.detector.params()) }

// histogramParams are the algo_params of detectors that judge by a histogram.
type histogramParams struct {
	Histogram *stats.Histogram `json:"histogram"`
	Threshold float64          `json:"internal_global_threshold"`
	Normal    [][2]int64       `json:"normal,omitempty"` // modal: from, to
}

// plain is part of detectors that know no ranges and no decades.
type plain struct{}

func (plain) ranges() []Range       { return nil }
func (plain) decades(int64) float64 { return 0 }

// emptyShare stands for the share of values in an empty bin: its logarithm
// is the highest score.
const emptyShare = 78.88e-32

// floorScore keeps models in which all values are alike from calling them all
// rare.
var floorScore = math.Log2(1.00001)

// rarity is the score of a share of all values.
func rarity(share float64) float64 { return -math.Log2(share + emptyShare) }
