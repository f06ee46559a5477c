package paramclient

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

func TestBacklogDoesNotGrowWithTime(t *testing.T) {
	key := trace.RankKey{Program: 0, Rank: 0}
	names := []string{"main()", "MPI_Send()", "solve<double>", "\xff not UTF-8"}
	c := New(Config{Shards: 1, MaxSeparate: 30}, nil)
	for step := range 5000 {
		one := &deltas.Contribution{StepKey: trace.StepKey{RankKey: key, Step: step}, PathDepth: callpath.MaxDepth}
		for _, name := range names {
			f := deltas.Function{FunctionStats: &summary.FunctionStats{FuncKey: trace.FuncKey{Name: name}}, Model: new(outlier.Model)}
			f.Model.Learn(int64(step%100), 0)
			f.Exclusive.Add(uint64(step % 100))
			one.Functions = append(one.Functions, f)
		}
		counter := &summary.Counter{FuncKey: trace.FuncKey{Name: "bytes"}}
		counter.Values.Add(1)
		one.Counters = append(one.Counters, counter)
		c.Add(one)
	}
	w := c.inbox.ranks[key]
	if len(w.apart) != 0 || len(w.joined.models) != len(names) || len(w.joined.counters) != 1 {
		t.Errorf("%d steps, %d models, %d counters wait", len(w.apart), len(w.joined.models), len(w.joined.counters))
	}
}
