package analyzer

import (
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// newReadings returns a rank without calls and a batch of readings of its counters, one each per millisecond.
func newReadings(counters int) (*rank, *trace.Batch) {
	names := trace.EmptyNames()
	for i := range counters {
		names.DefineCounter(0, trace.CounterID(i), fmt.Sprintf("counter %d", i))
	}
	cfg := Default()
	r := newRank(&cfg, trace.RankKey{}, &names, new(tally.Tally), nil)
	r.load = workload.New()
	b := new(trace.Batch)
	for i := range 4096 {
		e := trace.Event{Time: trace.Ticks(1_700_000_000_000_000 + 1000*(i/counters)), Value: uint64(1<<20 + i*i%977)}
		e.ID = uint32(i % counters)
		b.Events = append(b.Events, e)
	}
	return r, b
}

// later moves a batch to the time after its end.
func later(r *rank, b *trace.Batch) {
	span := b.Events[len(b.Events)-1].Time - b.Events[0].Time + 1000
	for i := range b.Events {
		b.Events[i].Time += span
	}
	r.start, r.end = b.Events[0].Time, b.Events[len(b.Events)-1].Time
}

// BenchmarkReadings reports the time to add a reading of a counter to the load.
func BenchmarkReadings(b *testing.B) {
	for _, counters := range []int{4, 30} {
		b.Run(fmt.Sprint(counters), func(b *testing.B) {
			r, batch := newReadings(counters)
			b.ReportAllocs()
			for b.Loop() {
				later(r, batch)
				r.addReadings(batch, true)
				r.mergeReadings()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch.Events)), "ns/reading")
		})
	}
}
