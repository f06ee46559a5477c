package provenance

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Model is the distribution of a function's times in algo_params: a histogram, moments, or
// nothing.
type Model struct {
	// Edges are ascending times in microseconds, one more than Counts. Both are empty without
	// a histogram.
	Edges, Counts []float64
	Total         float64 // of Counts
	Moments       *Moments
	Limit         *float64   // score above which a call is flagged
	Unit          trace.Unit // of algo_params
	HasParams     bool       // algo_params is not empty, even if unknown

	least, most *float64 // times, if the histogram has them
}

// Moments are statistics in the form of the schema.
type Moments struct {
	Count    *float64 `json:"count"`
	Kurtosis float64  `json:"kurtosis"`
	Maximum  float64  `json:"maximum"`
	Mean     *float64 `json:"mean"`
	Minimum  float64  `json:"minimum"`
	Skewness float64  `json:"skewness"`
	Stddev   float64  `json:"stddev"`
}

// bins is a histogram in either layout of the schema.
type bins struct {
	Counts []float64 `json:"Histogram Bin Counts"`
	Edges  []float64 `json:"Histogram Bin Edges"`

	EvenCounts []float64 `json:"Bin Counts"`
	First      float64   `json:"First edge"`
	Width      float64   `json:"Bin width"`

	Least *float64 `json:"Min"`
	Most  *float64 `json:"Max"`
}

// ReadModel reads algo_params in any layout of the schema, and converts their times to microseconds. It ignores invalid
// values.
func ReadModel(params json.RawMessage) Model {
	var in struct {
		Moments
		Histogram *bins      `json:"histogram"`
		Limit     *float64   `json:"internal_global_threshold"`
		Unit      trace.Unit `json:"tick_ns"`
	}
	m := Model{HasParams: len(params) > 0 && string(params) != "null"}
	if json.Unmarshal(params, &in) != nil {
		return m
	}
	s := &in.Moments
	switch {
	case in.Histogram != nil && m.take(in.Histogram):
		m.Limit = in.Limit
	case s.Count != nil && s.Mean != nil && *s.Count > 0:
		m.Moments = s
	}
	if m.Unit = in.Unit.Canonical(); m.Unit != 0 {
		m.scale()
	}
	return m
}

// scale converts times to microseconds.
func (m *Model) scale() {
	for i := range m.Edges {
		m.Edges[i] = m.Unit.MicrosOf(m.Edges[i])
	}
	var times []*float64
	if s := m.Moments; s != nil {
		times = append(times, s.Mean, &s.Minimum, &s.Maximum, &s.Stddev)
	}
	for _, t := range append(times, m.least, m.most) {
		if t != nil {
			*t = m.Unit.MicrosOf(*t)
		}
	}
}

// IsTick reports whether a bin of this width has one integer.
func (m *Model) IsTick(width float64) bool {
	if m.Unit.Canonical() == 0 {
		return width == 1
	}
	tick := m.Unit.Micros(1) // a difference of edges is rounded
	return math.Abs(width-tick) < tick/2
}

// take makes b the histogram of m. It returns false if b is invalid.
func (m *Model) take(b *bins) bool {
	edges, counts := b.Edges, b.Counts
	if len(counts) == 0 {
		counts, edges = b.EvenCounts, make([]float64, len(b.EvenCounts)+1)
		for i := range edges {
			edges[i] = b.First + float64(float64(i)*b.Width)
		}
	}
	total := 0.0
	for _, n := range counts {
		if n < 0 {
			return false
		}
		total += n
	}
	if len(edges) != len(counts)+1 || !slices.IsSorted(edges) || !(total > 0) {
		return false
	}
	for _, v := range []float64{total, edges[0], edges[len(edges)-1]} {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return false
		}
	}
	m.Edges, m.Counts, m.Total = edges, counts, total
	m.least, m.most = b.Least, b.Most
	return true
}

// Typical returns the typical time of the function in microseconds, which is the median of a
// histogram or the mean of moments, and the number of calls it was learned from. ok is false
// if the model has neither.
func (m *Model) Typical() (value, count float64, ok bool) {
	if m.Moments != nil {
		return *m.Moments.Mean, *m.Moments.Count, true
	}
	sum := 0.0
	for i, n := range m.Counts {
		if n > 0 && sum+n >= m.Total/2 {
			low, width := m.Edges[i], m.Edges[i+1]-m.Edges[i]
			if m.IsTick(width) {
				return low, m.Total, true
			}
			return m.within(low + float64(width*max(0, (m.Total/2-sum)/n))), m.Total, true
		}
		sum += n
	}
	return 0, 0, false
}

// Bin returns the index of the bin with v, -1 below all bins, and their number above all. A
// bin includes its lower edge; the last bin includes both edges.
func (m *Model) Bin(v float64) int {
	last := len(m.Counts) - 1
	width := m.Edges[last+1] - m.Edges[last]
	if v >= m.Edges[last] && v-m.Edges[last+1] <= 1e-6*width { // edges may be rounded
		return last
	}
	above, _ := slices.BinarySearchFunc(m.Edges, v, func(edge, v float64) int {
		if edge <= v {
			return -1
		}
		return 1
	})
	return above - 1
}

// Sides counts the calls in the bins below, at and above a time.
func (m *Model) Sides(v float64) (below, at, above float64) {
	bin := m.Bin(v)
	for i, n := range m.Counts {
		switch {
		case i < bin:
			below += n
		case i > bin:
			above += n
		default:
			at += n
		}
	}
	return below, at, above
}

// within limits a time to the range of the histogram.
func (m *Model) within(v float64) float64 {
	if m.least != nil {
		v = max(v, *m.least)
	}
	if m.most != nil {
		v = min(v, *m.most)
	}
	return v
}
