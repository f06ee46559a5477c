package peers_test

import (
	"reflect"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

func TestTimesOfWorkByWindow(t *testing.T) {
	const second = 1_000_000
	load := workload.New()
	path := callpath.Hash(0).Then("f")
	works := map[string]workload.Work{
		"f leaf": {Function: 1, Path: path.With(callpath.ClassOf(0))}, "f": {Function: 1, Path: path.With(callpath.ClassOf(4))},
		"f elsewhere": {Function: 1}, "kernel": {Function: 2, Path: path.Then("kernel")},
	}
	add := func(rank trace.Rank, thread trace.Thread, work string, at, time trace.Ticks) {
		lane := load.Lane(workload.LaneKey{RankKey: trace.RankKey{Rank: rank}, Thread: thread})
		lane.Device = thread > 0
		load.Add(lane, at, at+time, []workload.Cell{{Work: load.Work(works[work]), Sums: callpath.Sums{Calls: 1, Exclusive: uint64(time)}}})
	}
	add(0, 0, "f", second, 100)
	add(1, 0, "f leaf", second, 20)
	add(0, 0, "f elsewhere", second+1000, 3)
	add(0, 0, "f", 6*second, 400)
	add(0, 1, "kernel", 6*second, 5000)

	outcome := &summary.Outcome{Unit: trace.Microsecond, Load: load}
	for i, name := range []string{"f", "kernel"} {
		f := new(summary.FunctionResult)
		f.ID, f.Name = i+1, name
		outcome.Functions = append(outcome.Functions, f)
	}
	all := peers.OfRun(outcome)
	got := make(map[callpath.Context]map[trace.Ticks]trace.Ticks) // by second
	for k, times := range all.Work.Of {
		for w, time := range times {
			if time == 0 {
				continue
			}
			if got[k] == nil {
				got[k] = make(map[trace.Ticks]trace.Ticks)
			}
			got[k][(all.Work.Begin+all.Work.Width*trace.Ticks(w+1))/second] += time
		}
	}
	f := trace.FuncKey{Name: "f"}
	want := map[callpath.Context]map[trace.Ticks]trace.Ticks{
		{FuncKey: f, Path: path.Path()}: {1: 120, 6: 400}, {FuncKey: f}: {1: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
