package scenario

import (
	"fmt"
	"math"
)

// IsZero reports whether no shape is given.
func (d *Distribution) IsZero() bool {
	return d.Fixed == nil && d.Normal == nil && d.Lognormal == nil && d.Uniform == nil &&
		d.Integers == nil && d.Pareto == nil && d.Modes == nil && d.PerByte == 0
}

// largest is the largest number that a distribution may be made of: a year in
// microseconds, or as many bytes.
const largest = 366 * 24 * 3600 * 1e6

// pairs are the shapes that two numbers make.
var pairs = []struct {
	name  string
	of    func(*Distribution) []float64
	wants string
	ok    func(a, b float64) bool
}{
	{
		"normal", func(d *Distribution) []float64 { return d.Normal },
		"mean, standard deviation from 0 on", func(_, b float64) bool { return b >= 0 },
	},
	{
		"lognormal", func(d *Distribution) []float64 { return d.Lognormal },
		"median above 0, standard deviation of the logarithm from 0 to 5",
		func(a, b float64) bool { return a > 0 && b >= 0 && b <= 5 },
	},
	{
		"uniform", func(d *Distribution) []float64 { return d.Uniform },
		"lowest, highest", func(a, b float64) bool { return a <= b },
	},
	{
		"integers", func(d *Distribution) []float64 { return d.Integers },
		"lowest, highest, both whole", func(a, b float64) bool { return a <= b && a == math.Trunc(a) && b == math.Trunc(b) },
	},
	{
		"pareto", func(d *Distribution) []float64 { return d.Pareto },
		"lowest above 0, exponent from 0.5 on", func(a, b float64) bool { return a > 0 && b >= 0.5 },
	},
}

// check returns what is wrong with the shape; modes may not have modes.
func (d *Distribution) check(mayHaveModes bool) error {
	var bad problems
	shapes := 0
	if d.Fixed != nil {
		shapes++
		bad.inRange("fixed", *d.Fixed)
	}
	for _, s := range pairs {
		given := s.of(d)
		if given == nil {
			continue
		}
		shapes++
		if len(given) != 2 {
			bad.add("%s has %d numbers, wants [%s]", s.name, len(given), s.wants)
			continue
		}
		if bad.inRange(s.name, given...) && !s.ok(given[0], given[1]) {
			bad.add("%s = %v, wants [%s]", s.name, given, s.wants)
		}
	}
	if d.Modes != nil {
		shapes++
		bad.checkModes(d.Modes, mayHaveModes)
	}
	if shapes > 1 {
		bad.add("has more than one shape, wants one of fixed, normal, lognormal, uniform, integers, pareto and modes")
	}
	bad.inRange("per_byte", d.PerByte)
	return bad.err()
}

func (l *problems) checkModes(modes []Mode, may bool) {
	if !may {
		l.add("a mode cannot have modes")
		return
	}
	if len(modes) == 0 {
		l.add("modes is empty")
	}
	for i := range modes {
		m := &modes[i]
		place := fmt.Sprintf("mode %d", i+1)
		if !(m.Weight > 0) || m.Weight > largest {
			l.add("%s: weight = %v is not above 0, and up to %v", place, m.Weight, largest)
		}
		l.in(place, m.check(false))
	}
}

// inRange adds what is wrong with numbers of times, sizes or counters, and
// reports whether nothing is.
func (l *problems) inRange(name string, numbers ...float64) bool {
	for _, v := range numbers {
		if !(math.Abs(v) <= largest) {
			l.add("%s: %v is not from %v to %v", name, v, -largest, largest)
			return false
		}
	}
	return true
}

// Typical is about the middle of the distribution, for a message of the given
// size.
func (d *Distribution) Typical(bytes float64) float64 {
	v := d.PerByte * bytes
	switch {
	case d.Fixed != nil:
		v += *d.Fixed
	case d.Normal != nil:
		v += d.Normal[0]
	case d.Lognormal != nil:
		v += d.Lognormal[0]
	case d.Uniform != nil:
		v += (d.Uniform[0] + d.Uniform[1]) / 2
	case d.Integers != nil:
		v += (d.Integers[0] + d.Integers[1]) / 2
	case d.Pareto != nil:
		v += d.Pareto[0] * math.Pow(2, 1/d.Pareto[1])
	case d.Modes != nil:
		var sum, weights float64
		for i := range d.Modes {
			sum += d.Modes[i].Weight * d.Modes[i].Typical(bytes)
			weights += d.Modes[i].Weight
		}
		v += sum / weights
	}
	return max(v, 0)
}
