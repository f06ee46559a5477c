package outlier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// BenchmarkFalseFlags measures the table of false flags in docs/detectors.md, with
// -benchtime 1x.
func BenchmarkFalseFlags(b *testing.B) {
	normalOf := func(mean, width float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return mean + width*r.NormFloat64() }
	}
	lognormal := func(base, median, width float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return base + median*math.Exp(width*r.NormFloat64()) }
	}
	second := func(share float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 {
			if r.Float64() < share {
				return 3000 + 60*r.NormFloat64()
			}
			return 1000 + 50*r.NormFloat64()
		}
	}
	power := func(least, exponent float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return least * math.Pow(1-r.Float64(), -1/exponent) }
	}
	rows := []shape{
		{"constant", func(*rand.Rand) float64 { return 777 }},
		{"whole numbers from 10 to 14", func(r *rand.Rand) float64 { return float64(10 + r.IntN(5)) }},
		{"normal, 1000 ± 50", normalOf(1000, 50)},
		{"normal, 1000 ± 200", normalOf(1000, 200)},
		{"bimodal", workloads[1].draw},
		{"lognormal, width 0.1", lognormal(0, 1000, 0.1)},
		{"lognormal, width 0.4", lognormal(0, 1000, 0.4)},
		{"lognormal, width 1", lognormal(0, 1000, 1)},
		{"uniform, 500 to 1500", func(r *rand.Rand) float64 { return 500 + 1000*r.Float64() }},
		{"uniform, 0 to 1000", func(r *rand.Rand) float64 { return 1000 * r.Float64() }},
		{"exponential", func(r *rand.Rand) float64 { return 1000 * r.ExpFloat64() }},
		{"gamma", func(r *rand.Rand) float64 {
			return 250 * (r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64())
		}},
		{"Pareto, exponent 1.5, from 1000 µs on", power(1000, 1.5)},
		{"Pareto, exponent 3, from 1000 µs on", power(1000, 3)},
		{"Pareto, exponent 4, from 40 µs on", power(40, 4)},
		{"Laplace, 1000 ± 50", laplace.draw},
		{"1000 and a lognormal part of 30, width 0.7", lognormal(1000, 30, 0.7)},
		{"Student's t with 5 degrees of freedom", student(5).draw},
		{"Student's t with 3 degrees of freedom", student(3).draw},
		{"a second mode of 20 %", second(0.2)},
		{"a second mode of 5 %", second(0.05)},
		{"a second mode of 2 %", second(0.02)},
	}
	for _, s := range rows {
		for _, n := range []int{60, 200, 2000, 20_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				sets, flags := max(2, 2_000_000/n), 0
				for b.Loop() {
					flags = 0
					for seed := range uint64(sets) {
						values := s.times(rand.New(rand.NewPCG(31, seed)), n)
						flags += flagged(judge(outlier.Default(), counted(values)), values)
					}
				}
				b.ReportMetric(float64(flags)/float64(sets*n)*1e6, "flags/million")
			})
		}
	}
}
