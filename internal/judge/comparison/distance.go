package comparison

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Histograms are the times of a function in two runs, on the same bins.
type Histograms struct {
	// Distance is the largest difference of the cumulative shares (Kolmogorov and
	// Smirnov), At the time where it is, and Below the shares of calls up to there.
	Distance float64
	At       float64
	Below    [2]float64
	// Moved is the area between the cumulative shares (Wasserstein, earth mover), in
	// microseconds.
	Moved float64
	// Edges are in microseconds, one more than Shares, which are those of all calls.
	Edges  []float64
	Shares [2][]float64
}

// Overlay holds the histograms of two models against each other. Within a bin of a
// model the share of calls grows evenly. bins is how many common bins are wanted, of
// equal width on a logarithmic axis; 0: none. It is nil where a model has no histogram.
func Overlay(models [2]json.RawMessage, bins int) *Histograms {
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
	h := &Histograms{}
	for i, x := range points {
		a, b := shares[0][i], shares[1][i]
		if d := math.Abs(a - b); d > h.Distance {
			h.Distance, h.At, h.Below = d, x, [2]float64{a, b}
		}
		if i > 0 {
			h.Moved += between(shares[0][i-1]-shares[1][i-1], a-b) * (x - points[i-1])
		}
	}
	if !finite(h.Moved) || !finite(h.Distance) { // times of damaged models
		return nil
	}
	if bins > 0 {
		h.Edges = commonEdges(points, bins)
		for i := range m {
			all := cumulative(&m[i], h.Edges)
			for k := 1; k < len(all); k++ {
				h.Shares[i] = append(h.Shares[i], max(0, all[k]-all[k-1]))
			}
			// What is at the first edge itself.
			h.Shares[i][0] += all[0]
		}
	}
	return h
}

// between is the mean of the absolute values on the way from one value to another.
func between(from, to float64) float64 {
	if from*to >= 0 {
		return math.Abs(from+to) / 2
	}
	return (from*from + to*to) / (2 * (math.Abs(from) + math.Abs(to)))
}

// cumulative is the share of a histogram below each of some points, which ascend.
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

// leastTime is where a logarithmic axis of times begins at the latest, in microseconds.
const leastTime = 0.5

// commonEdges divides the axis from the first to the last of some times.
func commonEdges(points []float64, bins int) []float64 {
	low, high := max(points[0], leastTime), max(points[len(points)-1], leastTime)
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
