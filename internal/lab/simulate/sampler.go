package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// sampler draws numbers from a distribution.
type sampler struct {
	shape   uint8
	a, b    float64
	perByte float64
	modes   []sampler
	weights []float64 // cumulative weights of modes; the last is 1
}

const (
	shapeFixed = iota
	shapeNormal
	shapeLognormal
	shapeUniform
	shapeIntegers
	shapePareto
	shapeModes
)

func newSampler(d *scenario.Distribution) sampler {
	s := sampler{perByte: d.PerByte}
	set := func(shape uint8, given []float64) { s.shape, s.a, s.b = shape, given[0], given[1] }
	switch {
	case d.Fixed != nil:
		s.a = *d.Fixed
	case d.Normal != nil:
		set(shapeNormal, d.Normal)
	case d.Lognormal != nil:
		set(shapeLognormal, d.Lognormal)
	case d.Uniform != nil:
		set(shapeUniform, d.Uniform)
	case d.Integers != nil:
		set(shapeIntegers, d.Integers)
	case d.Pareto != nil:
		set(shapePareto, d.Pareto)
	case d.Modes != nil:
		s.shape = shapeModes
		var sum float64
		for i := range d.Modes {
			sum += d.Modes[i].Weight
			s.weights = append(s.weights, sum)
			s.modes = append(s.modes, newSampler(&d.Modes[i].Distribution))
		}
		for i := range s.weights {
			s.weights[i] /= sum
		}
	}
	return s
}

// longest bounds drawn numbers: about three years in microseconds.
const longest = 1e14

// draw returns a random number, for a message of the given size.
func (s *sampler) draw(r *rand.Rand, bytes int64) int64 { return bounded(s.value(r, bytes)) }

// bounded rounds a number and limits it to the valid range.
func bounded(v float64) int64 { return int64(min(max(v+0.5, 0), longest)) }

func (s *sampler) value(r *rand.Rand, bytes int64) float64 {
	var v float64
	switch s.shape {
	case shapeFixed:
		v = s.a
	case shapeNormal:
		v = s.a + s.b*r.NormFloat64()
	case shapeLognormal:
		v = s.a * math.Exp(s.b*r.NormFloat64())
	case shapeUniform:
		v = s.a + (s.b-s.a)*r.Float64()
	case shapeIntegers:
		v = s.a + float64(r.Int64N(int64(s.b-s.a)+1))
	case shapePareto:
		v = s.a * math.Pow(1-r.Float64(), -1/s.b)
	case shapeModes:
		p, i := r.Float64(), 0
		for i < len(s.weights)-1 && p >= s.weights[i] {
			i++
		}
		v = s.modes[i].value(r, bytes)
	}
	return v + s.perByte*float64(bytes)
}
