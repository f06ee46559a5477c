package comparison

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Overlay compares the histograms of two models, assuming that calls are spread evenly within a bin. It returns the given number
// of common bins of equal width on a logarithmic axis, or nil if a model has no histogram.
func Overlay(models [2]json.RawMessage, bins int) *api.HistogramPair {
	var m [2]provenance.Model
	for i := range models {
		if m[i] = provenance.ReadModel(models[i]); len(m[i].Counts) == 0 {
			return nil
		}
	}
	points := slices.Concat(m[0].Edges, m[1].Edges)
	slices.Sort(points)
	points = slices.Compact(points)
	shares := [2][]float64{cumulative(&m[0], points), cumulative(&m[1], points)}
	h := new(api.HistogramPair)
	for i, x := range points {
		a, b := shares[0][i], shares[1][i]
		if d := math.Abs(a - b); d > h.Distance {
			h.Distance, h.At, h.Below = d, x, [2]float64{a, b}
		}
		if i > 0 {
			h.Moved += between(shares[0][i-1]-shares[1][i-1], a-b) * (x - points[i-1])
		}
	}
	if !finite(h.Moved) || !finite(h.Distance) { // models are damaged
		return nil
	}
	if bins > 0 {
		h.Edges = commonEdges(points, leastTicks*min(m[0].Unit.Micros(1), m[1].Unit.Micros(1)), bins)
		for i := range m {
			all := cumulative(&m[i], h.Edges)
			for k := 1; k < len(all); k++ {
				h.Shares[i] = append(h.Shares[i], max(0, all[k]-all[k-1]))
			}
			h.Shares[i][0] += all[0] // calls at the first edge
		}
	}
	return h
}

// between returns the mean absolute value on the straight line from one value to another.
func between(from, to float64) float64 {
	if from*to >= 0 {
		return math.Abs(from+to) / 2
	}
	return (from*from + to*to) / (2 * (math.Abs(from) + math.Abs(to)))
}

// cumulative returns the share of a histogram below each of the points, which are in ascending order.
func cumulative(m *provenance.Model, points []float64) []float64 {
	shares := make([]float64, len(points))
	sum, bin := 0.0, 0
	for i, x := range points {
		for bin < len(m.Counts) && m.Edges[bin+1] <= x {
			sum += m.Counts[bin]
			bin++
		}
		part := 0.0
		if bin < len(m.Counts) && m.Edges[bin] < x {
			part = m.Counts[bin] * (x - m.Edges[bin]) / (m.Edges[bin+1] - m.Edges[bin])
		}
		shares[i] = (sum + part) / m.Total
	}
	return shares
}

// leastTicks is the smallest lower end of a logarithmic time axis.
const leastTicks = 0.5

// commonEdges divides the axis from the first to the last point into bins. The axis begins at least or above.
func commonEdges(points []float64, least float64, bins int) []float64 {
	low, high := max(points[0], least), max(points[len(points)-1], least)
	if high <= low {
		high = low * 1.1
	}
	edges := make([]float64, bins+1)
	for i := range edges {
		edges[i] = low * math.Pow(high/low, float64(i)/float64(bins))
	}
	edges[bins] = high
	return edges
}
