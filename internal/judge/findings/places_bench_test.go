package findings_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// BenchmarkSlowPlaces concludes findings of delays on many ranks, of which those of one host are slow for
// a while.
func BenchmarkSlowPlaces(b *testing.B) {
	for _, ranks := range []int{16, 1000, 10_000} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			r := &blame.Run{End: 100 * second}
			for rank := range ranks {
				hits := 50
				if rank/4 == 1 {
					hits = 1000
				}
				for i := range hits {
					at := trace.Ticks(rng.Int64N(100 * second))
					if i >= 50 {
						at = 40*second + at/5
					}
					r.Anomalies = append(r.Anomalies, blame.Anomaly{
						Event: fmt.Sprintf("%d:0:%d", rank, i), Rank: trace.Rank(rank), Host: fmt.Sprintf("node%04d", rank/4), Func: "work",
						Path: "main > work", Kind: provenance.Slow, Entry: at, Exit: at + 2000, Exclusive: 2000, Lost: 1000,
					})
				}
			}
			links := blame.Find(r)
			for b.Loop() {
				findings.Conclude(r, links, nil, nil, nil)
			}
			b.ReportMetric(float64(len(r.Anomalies))*float64(b.N)/b.Elapsed().Seconds(), "anomalies/s")
		})
	}
}
