package heatmap

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// FuzzSpan checks that columns cover the span.
func FuzzSpan(f *testing.F) {
	f.Add(int64(1_000_000), int64(2_500_000), int64(1e9), 7)
	f.Add(int64(-1e18), int64(1e18), int64(1), 2000)
	f.Fuzz(func(t *testing.T, first, last, length int64, columns int) {
		bound := func(n int64) *time.Duration { return new(time.Duration(max(math.MinInt64/2, min(n, math.MaxInt64/2)))) }
		h := Params{From: bound(first), To: bound(last), Columns: 1 + int(uint(columns)%2000), Metric: MetricLost}
		if h.Check() != nil {
			return
		}
		from, to := h.span(trace.Nanosecond, trace.Ticks(max(0, min(length, 1e16))))
		line := executions.Timeline{From: from, To: to, Columns: h.Columns}
		width := line.ColumnWidth()
		if to <= from || width < 1 || width*trace.Ticks(h.Columns) < to-from {
			t.Errorf("%+v: from %d to %d, %d wide", h, from, to, width)
		}
	})
}

// FuzzGroups checks that groups hold each rank once, in order.
func FuzzGroups(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 2}, uint8(3))
	f.Add([]byte{0, 16, 32, 48, 64}, uint8(2))
	f.Fuzz(func(t *testing.T, places []byte, most uint8) {
		var ranks []executions.RankHost
		for i, b := range places {
			ranks = append(ranks, executions.RankHost{
				RankKey: trace.RankKey{Program: trace.Program(b >> 5), Rank: trace.Rank(i)},
				Host:    string(rune('a' + b&31)),
			})
		}
		SortRanks(ranks)
		limit := max(1, int(most))
		groups := groupRanks(ranks, limit)
		if all := slices.Concat(groups...); !slices.Equal(all, ranks) || len(groups) > limit {
			t.Errorf("%d groups of %d ranks, at most %d", len(groups), len(ranks), limit)
		}
	})
}
