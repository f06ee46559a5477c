package outlier_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// TestPartsExplainTimes compares a part of all times with the rest: a part explains the
// spread only if its times differ from the others.
func TestPartsExplainTimes(t *testing.T) {
	times := func(n int, from int64) *stats.Histogram {
		var h stats.Histogram
		for i := range n {
			h.Add(from + int64(i%100)*from/100)
		}
		return &h
	}
	for _, test := range []struct {
		name       string
		part, rest *stats.Histogram
		want       bool
	}{
		{"ten times as long", times(200, 10_000), times(1_000, 1_000), true},
		{"ten times as short", times(200, 100), times(1_000, 1_000), true},
		{"the same", times(200, 1_000), times(1_000, 1_000), false},
		{"too few", times(19, 10_000), times(1_000, 1_000), false},
		{"no others", times(200, 1_000), times(0, 1_000), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var whole stats.Histogram
			whole.Merge(test.part)
			whole.Merge(test.rest)
			var part, all outlier.CoarseTimes
			for range 2 { // the second time in the same memory
				all.Count(&whole)
				part.CountPart(test.part, &all)
				if got := part.Explain(&all, 20); got != test.want {
					t.Errorf("Explain: %v, want %v", got, test.want)
				}
			}
		})
	}
}
