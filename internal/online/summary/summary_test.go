package summary_test

import (
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

func TestRanksOfFunctionAreSortedAndUnique(t *testing.T) {
	key := trace.FuncKey{Name: "solve"}
	o := summary.NewOutcome([]*summary.FunctionStats{{FuncKey: key}}, func(int) float64 { return 0 })
	for _, rank := range []trace.Rank{1, 0, 1, 3, 2, 0} { // those of streams in two parts
		o.Add(&summary.RankOutcome{RankKey: trace.RankKey{Rank: rank}, Functions: []summary.FunctionStats{{FuncKey: key}}})
	}
	if want := []trace.Rank{0, 1, 2, 3}; !slices.Equal(o.Functions[0].Ranks, want) {
		t.Errorf("got the ranks %v, want %v", o.Functions[0].Ranks, want)
	}
}
