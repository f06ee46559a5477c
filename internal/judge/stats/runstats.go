// Package stats provides mergeable statistics: sums of integers, histograms with fixed bins, and moments of fractions. Adding
// values one by one or in groups, and merging statistics, give the same result: exactly for Sums and histograms, up to
// rounding for RunStats. The package is pure and retains no references to its inputs.
package stats

import (
	"encoding/json"
	"math"
)

// RunStats contains the count, the extremes and the first four moments of a sample. The zero value is the empty sample and the
// identity of Merge.
type RunStats struct {
	N        float64 // number of values
	Mean     float64
	M2       float64 // sum of squared distances from the mean
	M3       float64 // sum of third powers
	M4       float64 // sum of fourth powers
	Min, Max float64 // 0 if empty
}

// The conversions float64(…) of products keep compilers from fusing them with the following addition: all machines must agree to
// the last bit.

// Add adds one value.
func (s *RunStats) Add(x float64) {
	n0 := s.N
	s.N++
	if n0 == 0 {
		s.Mean, s.Min, s.Max = x, x, x
		return
	}
	s.Min, s.Max = min(s.Min, x), max(s.Max, x)
	n := s.N
	d := x - s.Mean
	dn := d / n
	dn2 := float64(dn * dn)
	t := float64(float64(d*dn) * n0)
	s.M4 += float64(float64(t*dn2)*(float64(n*n)-float64(3*n)+3)) + float64(6*float64(dn2*s.M2)) - float64(4*float64(dn*s.M3))
	s.M3 += float64(float64(t*dn)*(n-2)) - float64(3*float64(dn*s.M2))
	s.M2 += t
	s.Mean += dn
}

// Merge adds all values of o.
func (s *RunStats) Merge(o RunStats) {
	if o.N == 0 {
		return
	}
	if s.N == 0 {
		*s = o
		return
	}
	na, nb := s.N, o.N
	n := na + nb
	d := o.Mean - s.Mean
	d2 := float64(d * d)
	ab := float64(na * nb)
	m4 := s.M4 + o.M4 +
		float64(float64(float64(d2*d2)*ab)*(float64(na*na)-ab+float64(nb*nb)))/float64(n*float64(n*n)) +
		float64(float64(6*d2)*(float64(float64(na*na)*o.M2)+float64(float64(nb*nb)*s.M2)))/float64(n*n) +
		float64(float64(4*d)*(float64(na*o.M3)-float64(nb*s.M3)))/n
	m3 := s.M3 + o.M3 +
		float64(float64(float64(d2*d)*ab)*(na-nb))/float64(n*n) +
		float64(float64(3*d)*(float64(na*o.M2)-float64(nb*s.M2)))/n
	s.M2 += o.M2 + float64(d2*ab)/n
	s.M3, s.M4 = m3, m4
	s.Mean = (float64(na*s.Mean) + float64(nb*o.Mean)) / n
	s.N = n
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
}

// Remove removes a value that Add added. It keeps the extremes and drops the third and fourth moments.
func (s *RunStats) Remove(x float64) {
	if s.N <= 1 {
		*s = RunStats{}
		return
	}
	without := RunStats{N: s.N - 1, Min: s.Min, Max: s.Max}
	without.Mean = (float64(s.N*s.Mean) - x) / without.N
	without.M2 = max(0, s.M2-float64((x-s.Mean)*(x-without.Mean)))
	*s = without
}

// Sum returns the sum of all values.
func (s *RunStats) Sum() float64 { return s.Mean * s.N }

// Variance returns the estimated variance of the population, or 0 for fewer than two values.
func (s *RunStats) Variance() float64 {
	if s.N < 2 {
		return 0
	}
	return s.M2 / (s.N - 1)
}

// Stddev returns the square root of the Variance.
func (s *RunStats) Stddev() float64 { return math.Sqrt(s.Variance()) }

// spread reports whether the values differ by more than rounding errors.
func (s *RunStats) spread() bool {
	return s.N > 1 && s.M2 > 1e-24*float64(s.Mean*s.Mean)*s.N && s.M2 > 0
}

// Skewness returns the skewness of the sample, or 0 if all values are equal.
func (s *RunStats) Skewness() float64 {
	if !s.spread() {
		return 0
	}
	return math.Sqrt(s.N) * s.M3 / math.Pow(s.M2, 1.5)
}

// Kurtosis returns the excess kurtosis of the sample, or 0 if all values are equal.
func (s *RunStats) Kurtosis() float64 {
	if !s.spread() {
		return 0
	}
	return s.N*s.M4/float64(s.M2*s.M2) - 3
}

// Summary is the representation of a RunStats in the provenance schema.
type Summary struct {
	Accumulate float64 `json:"accumulate"` // sum of all values
	Count      float64 `json:"count"`
	Kurtosis   float64 `json:"kurtosis"`
	Maximum    float64 `json:"maximum"`
	Mean       float64 `json:"mean"`
	Minimum    float64 `json:"minimum"`
	Skewness   float64 `json:"skewness"`
	Stddev     float64 `json:"stddev"`
}

// Summary returns the representation of the provenance schema.
func (s *RunStats) Summary() Summary {
	return Summary{
		Accumulate: s.Sum(), Count: s.N, Kurtosis: s.Kurtosis(), Maximum: s.Max,
		Mean: s.Mean, Minimum: s.Min, Skewness: s.Skewness(), Stddev: s.Stddev(),
	}
}

// MarshalJSON returns the Summary as JSON.
func (s RunStats) MarshalJSON() ([]byte, error) { return json.Marshal(s.Summary()) }

// Valid reports whether a sample with these moments can exist.
func (s *RunStats) Valid() bool {
	for _, v := range [...]float64{s.N, s.Mean, s.M2, s.M3, s.M4, s.Min, s.Max} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return s.N >= 0 && s.M2 >= 0 && s.M4 >= 0 && s.Min <= s.Max
}
