package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// IsZero reports whether no shape is given.
func (d *Distribution) IsZero() bool {
	return d.Fixed == nil && d.Normal == nil && d.Lognormal == nil && d.Uniform == nil &&
		d.Integers == nil && d.Pareto == nil && d.Modes == nil && d.PerByte == 0
}

// largest bounds the parameters of distributions: a year in microseconds, or bytes.
const largest = 366 * 24 * 3600 * 1e6

// pairs are the shapes with two parameters.
var pairs = []struct {
	name  string
	of    func(*Distribution) []float64
	wants string
	ok    func(a, b float64) bool
	// typical is about the middle of the distribution.
	typical func(a, b float64) float64
	draw    func(r *rand.Rand, a, b float64) float64
}{
	{
		"normal", func(d *Distribution) []float64 { return d.Normal },
		"mean, standard deviation ≥ 0", func(_, b float64) bool { return b >= 0 }, first,
		func(r *rand.Rand, a, b float64) float64 { return a + b*r.NormFloat64() },
	},
	{
		"lognormal", func(d *Distribution) []float64 { return d.Lognormal },
		"median above 0, standard deviation of the logarithm from 0 to 5",
		func(a, b float64) bool { return a > 0 && b >= 0 && b <= 5 }, first,
		func(r *rand.Rand, a, b float64) float64 { return a * math.Exp(b*r.NormFloat64()) },
	},
	{
		"uniform", func(d *Distribution) []float64 { return d.Uniform },
		"lowest, highest", func(a, b float64) bool { return a <= b }, middle,
		func(r *rand.Rand, a, b float64) float64 { return a + (b-a)*r.Float64() },
	},
	{
		"integers", func(d *Distribution) []float64 { return d.Integers },
		"lowest, highest, both integers", func(a, b float64) bool { return a <= b && a == math.Trunc(a) && b == math.Trunc(b) }, middle,
		func(r *rand.Rand, a, b float64) float64 { return a + float64(r.Int64N(int64(b-a)+1)) },
	},
	{
		"pareto", func(d *Distribution) []float64 { return d.Pareto },
		"lowest above 0, exponent ≥ 0.5", func(a, b float64) bool { return a > 0 && b >= 0.5 },
		func(a, b float64) float64 { return a * math.Pow(2, 1/b) },
		func(r *rand.Rand, a, b float64) float64 { return a * math.Pow(1-r.Float64(), -1/b) },
	},
}

func first(a, _ float64) float64  { return a }
func middle(a, b float64) float64 { return (a + b) / 2 }

// check returns the errors of a distribution. Modes may not have modes.
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
			l.add("%s: weight = %v must be above 0 and at most %v", place, m.Weight, largest)
		}
		l.in(place, m.check(false))
	}
}

// inRange reports whether times, sizes or counters are in the valid range, and adds an
// error if not.
func (l *problems) inRange(name string, numbers ...float64) bool {
	for _, v := range numbers {
		if !(math.Abs(v) <= largest) {
			l.add("%s: %v is not from %v to %v", name, v, -largest, largest)
			return false
		}
	}
	return true
}

// Typical returns about the middle of the distribution, for a message of the given size.
func (d *Distribution) Typical(bytes float64) float64 {
	v := d.PerByte * bytes
	if d.Fixed != nil {
		v += *d.Fixed
	}
	for i := range pairs {
		if p := pairs[i].of(d); p != nil {
			v += pairs[i].typical(p[0], p[1])
		}
	}
	if d.Modes != nil {
		var sum, weights float64
		for i := range d.Modes {
			sum += d.Modes[i].Weight * d.Modes[i].Typical(bytes)
			weights += d.Modes[i].Weight
		}
		v += sum / weights
	}
	return max(v, 0)
}
