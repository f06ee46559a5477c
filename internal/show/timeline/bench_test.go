package timeline_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/timeline"
)

// BenchmarkTimeline builds the timeline of 10,000 ranks with 128 bins.
func BenchmarkTimeline(b *testing.B) {
	s := activity.New(trace.Microsecond)
	for r := range 10_000 {
		records := make([]activity.Record, 0, 256)
		for i := range trace.Ticks(128) {
			at := start + i<<16
			records = append(records, activity.Record{From: at, To: at + 40_000, Time: 40_000, Class: activity.Own},
				activity.Record{From: at + 40_000, To: at + 60_000, Time: 20_000, Class: activity.MPI})
		}
		s.Add(trace.RankKey{Rank: trace.Rank(r)}, start, start+128<<16, records)
	}
	for b.Loop() {
		timeline.Of(s, trace.Microsecond, start, nil, timeline.Params{Rows: 420, Selects: all})
	}
}
