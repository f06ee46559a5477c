package summary_test

import (
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

const (
	benchFunctions = 200
	benchRanks     = 2000
	benchCounters  = 20
)

// exchange is what a rank adds: some calls of all functions, and a step of which
// three functions have anomalies.
type exchange struct {
	functions []*summary.FunctionStats
	none, one *stats.Sums
	counters  []string
	values    *stats.Sums
	step      summary.StepReport
}

func newExchange() *exchange {
	e := &exchange{none: packettest.Sums(0), one: packettest.Sums(1), values: packettest.Sums(1, 20, 300)}
	for i := range benchFunctions {
		v := uint64(i*37 + 5)
		e.functions = append(e.functions, packettest.Function(i, 0, fmt.Sprintf("void module::function_%d(double *, int)", i), v, v+11, 3*v, 1000*v))
	}
	for i := range benchCounters {
		e.counters = append(e.counters, fmt.Sprintf("counter %d", i))
	}
	e.step = summary.StepReport{Scores: packettest.Scores(1.5, 2.25, 100), First: 1000, Last: 2000}
	for i := range 3 {
		e.step.Functions = append(e.step.Functions, summary.FunctionStats{
			ID:        i * 11,
			Anomalies: packettest.Anomaly(0, 1000, trace.Ticks(1100+i*i*311), 1.5),
		})
	}
	return e
}

func (e *exchange) add(l *summary.Live, rank trace.Rank, step int32) {
	for i, f := range e.functions {
		if i%11 == 0 && i < 33 {
			packettest.AddFunction(l, f, e.one)
		} else {
			packettest.AddFunction(l, f, e.none)
		}
	}
	l.AddRank(trace.RankKey{Program: 0, Rank: rank}, e.values)
	e.step.Rank, e.step.Step = rank, step
	l.AddStep(&e.step)
	for _, name := range e.counters {
		packettest.AddCounter(l, 0, name, e.values)
	}
}

// BenchmarkLiveAdd adds one exchange of a rank: 200 functions, 20 counters.
func BenchmarkLiveAdd(b *testing.B) {
	l, e := summary.NewLive(), newExchange()
	for rank := range trace.Rank(benchRanks) {
		e.add(l, rank, 0)
	}
	l.Discard()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e.add(l, trace.Rank(n*7%benchRanks), 1)
		if n++; n%benchRanks == 0 {
			l.Discard()
		}
	}
}

// BenchmarkTakeNews takes the news of 50 ranks with anomalies in three functions each.
func BenchmarkTakeNews(b *testing.B) {
	l, e := summary.NewLive(), newExchange()
	for rank := range trace.Rank(benchRanks) {
		e.add(l, rank, 0)
	}
	l.Discard()
	b.ReportAllocs()
	for step := int32(1); b.Loop(); step++ {
		b.StopTimer()
		for i := range trace.Rank(50) {
			e.add(l, (i*41+trace.Rank(step))%benchRanks, step)
		}
		b.StartTimer()
		l.TakeNews()
	}
}

func BenchmarkLiveAppendBinary(b *testing.B) {
	l, e := summary.NewLive(), newExchange()
	for rank := range trace.Rank(benchRanks) {
		e.add(l, rank, 0)
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = l.AppendBinary(buf[:0])
	}
	b.ReportMetric(float64(len(buf)), "bytes")
}
