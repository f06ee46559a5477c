package legacy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

// BenchmarkPacket builds packets of 200 functions, 20 counters and 50 ranks with anomalies in
// three functions each.
func BenchmarkPacket(b *testing.B) {
	const ranks = 2000
	l := summary.NewLive()
	add := func(rank trace.Rank, step int32) {
		for i := range 200 {
			v := uint64(i*37 + 5)
			packettest.AddFunction(l, packettest.Function(i, 0, fmt.Sprintf("void module::function_%d(double *, int)", i), v, v+11, 3*v, 1000*v), packettest.Sums(1))
		}
		l.AddRank(trace.RankKey{Rank: rank}, packettest.Sums(1, 20, 300))
		report := summary.StepReport{RankKey: trace.RankKey{Rank: rank}, Step: step, Scores: packettest.Scores(1.5, 2.25, 100), First: 1000, Last: 2000}
		for i := range 3 {
			report.Functions = append(report.Functions, summary.FunctionStats{ID: i * 11, Anomalies: packettest.Anomaly(0, 1000, trace.Ticks(1100+i*i*311), 1.5)})
		}
		l.AddStep(&report)
		for i := range 20 {
			packettest.AddCounter(l, 0, fmt.Sprintf("counter %d", i), packettest.Sums(1, 20, 300))
		}
	}
	for rank := range trace.Rank(ranks) {
		add(rank, 0)
	}
	for schema := 1; schema <= 2; schema++ {
		b.Run(fmt.Sprintf("schema=%d", schema), func(b *testing.B) {
			l.Discard()
			b.ReportAllocs()
			size := 0
			for step := int32(1); b.Loop(); step++ {
				b.StopTimer()
				for i := range trace.Rank(50) {
					add((i*41+trace.Rank(step))%ranks, step)
				}
				b.StartTimer()
				size = len(legacy.NewPacket(l, schema, time.UnixMilli(1)).Encode())
			}
			b.ReportMetric(float64(size), "bytes/packet")
		})
	}
}
