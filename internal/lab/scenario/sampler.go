package scenario

import "math/rand/v2"

// Sampler draws numbers from a distribution. The zero value draws 0.
type Sampler struct {
	draw    func(r *rand.Rand, a, b float64) float64 // nil: always a, or one of modes
	a, b    float64
	perByte float64
	modes   []Sampler
	weights []float64 // cumulative weights of modes; the last is 1
}

// Sampler returns a sampler of a valid distribution; nil is always 0.
func (d *Distribution) Sampler() (s Sampler) {
	if d == nil {
		return s
	}
	s.perByte = d.PerByte
	if d.Fixed != nil {
		s.a = *d.Fixed
	}
	for i := range pairs {
		if given := pairs[i].of(d); given != nil {
			s.draw, s.a, s.b = pairs[i].draw, given[0], given[1]
		}
	}
	var sum float64
	for i := range d.Modes {
		sum += d.Modes[i].Weight
		s.weights = append(s.weights, sum)
		s.modes = append(s.modes, d.Modes[i].Sampler())
	}
	for i := range s.weights {
		s.weights[i] /= sum
	}
	return s
}

// Longest bounds drawn numbers: about three years in microseconds.
const Longest = 1e14

// Draw returns a random number, for a message of the given size.
func (s *Sampler) Draw(r *rand.Rand, bytes int64) int64 { return Bounded(s.value(r, bytes)) }

// Bounded rounds a number and limits it to the valid range.
func Bounded(v float64) int64 { return int64(min(max(v+0.5, 0), Longest)) }

func (s *Sampler) value(r *rand.Rand, bytes int64) float64 {
	v := s.a
	switch {
	case s.draw != nil:
		v = s.draw(r, s.a, s.b)
	case s.modes != nil:
		p, i := r.Float64(), 0
		for i < len(s.weights)-1 && p >= s.weights[i] {
			i++
		}
		v = s.modes[i].value(r, bytes)
	}
	return v + s.perByte*float64(bytes)
}
