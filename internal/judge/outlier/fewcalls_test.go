package outlier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// BenchmarkFewCalls measures the table of found calls in docs/detectors.md, with -benchtime 1x: the share of long calls that are
// flagged among calls of about 20 ms.
func BenchmarkFewCalls(b *testing.B) {
	const usual = 20_000
	shapes := []shape{
		{"normal, 10 %", func(r *rand.Rand) float64 { return usual * (1 + 0.1*r.NormFloat64()) }},
		{"lognormal, width 0.1", func(r *rand.Rand) float64 { return usual * math.Exp(0.1*r.NormFloat64()) }},
		{"exponential part of 10 %", func(r *rand.Rand) float64 { return usual * (1 + 0.1*r.ExpFloat64()) }},
		{"lognormal, width 0.4", func(r *rand.Rand) float64 { return usual * math.Exp(0.4*r.NormFloat64()) }},
	}
	for _, s := range shapes {
		for _, n := range []int{60, 140, 300, 1000} {
			for _, long := range []int{1, 3} {
				for _, factor := range []float64{3, 5, 10} {
					b.Run(fmt.Sprintf("%s/%d/%d of %g", s.name, n, long, factor), func(b *testing.B) {
						const runs = 300
						found := 0
						for b.Loop() {
							found = 0
							for seed := range uint64(runs) {
								r := rand.New(rand.NewPCG(37, seed))
								values := s.times(r, n-long)
								var planted []int64
								for range long {
									planted = append(planted, int64(s.draw(r)+usual*(factor-1)*math.Exp(0.3*r.NormFloat64())))
								}
								found += flagged(judge(outlier.Default(), counted(append(values, planted...))), planted)
							}
						}
						b.ReportMetric(float64(found)/float64(runs*long)*100, "%found")
					})
				}
			}
		}
	}
}
