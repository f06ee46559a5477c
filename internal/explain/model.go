package explain

import (
	"encoding/json"
	"math"
	"slices"
)

// Typical returns the time in microseconds that is typical of the function
// whose model params is, and the number of calls that it was learned from: the
// median of a histogram, the mean of moments. It is not ok where params holds no
// model that is known, or one of no call.
func Typical(params json.RawMessage) (value, count float64, ok bool) {
	m := parseModel(params)
	return m.typical()
}

// Histogram returns the histogram that params holds, in one of the two layouts
// of the schema: counts of calls, and edges in microseconds in ascending order,
// of which there is one more. It is not ok where there is none, or one without
// calls.
func Histogram(params json.RawMessage) (edges, counts []float64, ok bool) {
	m := parseModel(params)
	return m.edges, m.counts, len(m.counts) > 0
}

// model is what a function was judged by: a histogram, moments, or nothing.
type model struct {
	edges, counts []float64
	total         float64
	moments       *moments
	limit         *float64 // score from which on a call is flagged
	given         bool     // there is something, if only of an unknown kind
}

// moments are RunStats in the form of the schema.
type moments struct {
	Count    *float64 `json:"count"`
	Kurtosis float64  `json:"kurtosis"`
	Maximum  float64  `json:"maximum"`
	Mean     *float64 `json:"mean"`
	Minimum  float64  `json:"minimum"`
	Skewness float64  `json:"skewness"`
	Stddev   *float64 `json:"stddev"`
}

// bins are a histogram in either layout of the schema.
type bins struct {
	Counts []float64 `json:"Histogram Bin Counts"`
	Edges  []float64 `json:"Histogram Bin Edges"`

	EvenCounts []float64 `json:"Bin Counts"`
	First      float64   `json:"First edge"`
	Width      float64   `json:"Bin width"`
}

func parseModel(params json.RawMessage) model {
	var in struct {
		moments
		Histogram *bins    `json:"histogram"`
		Limit     *float64 `json:"internal_global_threshold"`
	}
	m := model{given: len(params) > 0 && string(params) != "null"}
	if json.Unmarshal(params, &in) != nil {
		return m
	}
	s := &in.moments
	switch {
	case in.Histogram != nil && m.take(in.Histogram):
		m.limit = in.Limit
	case s.Count != nil && s.Mean != nil && s.Stddev != nil && *s.Count > 0:
		m.moments = s
	}
	return m
}

// take makes b the histogram of m, unless it makes no sense.
func (m *model) take(b *bins) bool {
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
	m.edges, m.counts, m.total = edges, counts, total
	return true
}

func (m *model) known() bool { return m.moments != nil || len(m.counts) > 0 }

// absence says why there is no model.
func (m *model) absence() string {
	if m.given {
		return "no model is kept that can be read"
	}
	return "no model is kept"
}

func (m *model) typical() (value, count float64, ok bool) {
	if m.moments != nil {
		return *m.moments.Mean, *m.moments.Count, true
	}
	sum := 0.0
	for i, n := range m.counts {
		if n > 0 && sum+n >= m.total/2 {
			low, width := m.edges[i], m.edges[i+1]-m.edges[i]
			if width == 1 { // it holds one whole number
				return low, m.total, true
			}
			return low + float64(width*max(0, (m.total/2-sum)/n)), m.total, true
		}
		sum += n
	}
	return 0, 0, false
}

// binOf returns the number of the bin that holds v, -1 below all, and the number
// of bins above all. A bin holds its lower edge; the last one both.
func (m *model) binOf(v float64) int {
	last := len(m.counts) - 1
	width := m.edges[last+1] - m.edges[last]
	if v >= m.edges[last] && v-m.edges[last+1] <= 1e-6*width { // edges may be rounded
		return last
	}
	above, _ := slices.BinarySearchFunc(m.edges, v, func(edge, v float64) int {
		if edge <= v {
			return -1
		}
		return 1
	})
	return above - 1
}
