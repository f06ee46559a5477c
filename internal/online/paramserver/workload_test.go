package paramserver

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
)

// loadTrace is a rank that works for a tenth of a second in each step.
func loadTrace(key trace.RankKey, steps int) map[trace.RankKey][]*deltas.Contribution {
	all := oneTrace(key, steps)
	for step, c := range all[key][:steps] {
		c.Names = []trace.FuncKey{{Program: key.Program, Name: "solve"}}
		c.Load = workload.New()
		entry := trace.Ticks(1e9 + 1e5*step)
		work := c.Load.Work(workload.Work{Program: key.Program, Path: 3})
		c.Load.Add(c.Load.Lane(workload.LaneKey{RankKey: key}), entry, entry+9e4,
			[]workload.Cell{{Work: work, Sums: callpath.Sums{Calls: 1, Exclusive: 9e4}}})
	}
	return all
}

// loadCalls returns the number of calls in the load of a server.
func loadCalls(s *State) (calls uint64) {
	load, _ := s.Load()
	for _, lane := range load.Lanes() {
		for i := range lane.Windows {
			for _, c := range lane.Windows[i].Cells(nil) {
				calls += c.Calls
			}
		}
	}
	return calls
}

// TestLoadIsSentOnceASecond reads steps of a tenth of a second, and kills the analyzer while it
// holds the load of some.
func TestLoadIsSentOnceASecond(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 2, Rank: 5}
	traces := loadTrace(key, 28)
	a := newAnalyzer(t, w, "a", 1, traces)
	for i := range 25 {
		a.readOne(key)
		a.mustTalk()
		if calls := loadCalls(w.state(0)); calls < uint64(i-9) && i > 9 || calls > uint64(i)+1 {
			t.Errorf("after %d steps the server has the load of %d", i+1, calls)
		}
	}
	if calls := loadCalls(w.state(0)); calls >= 25 {
		t.Error("the client holds nothing back")
	}
	a.start()
	settle(w, a)
	wantSameLive(t, w.state(0), newOracle(traces, func(trace.FuncKey) int { return 0 }))
	load, name := w.state(0).Load()
	if got := name(key.Program, load.Works()[0].Function); loadCalls(w.state(0)) != 28 || got != "solve" {
		t.Errorf("%d calls of %q, want 28 of solve", loadCalls(w.state(0)), got)
	}
}

func TestJoinedStepsKeepTheirLoad(t *testing.T) {
	w := newWorld(t, Config{})
	w.kill(0)
	key := trace.RankKey{Rank: 3}
	traces := loadTrace(key, 40)
	a := newAnalyzer(t, w, "a", 1, traces)
	a.cfg.MaxSeparate = 10
	a.start()
	for range 30 {
		a.readOne(key)
	}
	if n := a.client.Progress().Separate; n > 0 {
		t.Errorf("%d functions wait one by one", n)
	}
	w.start(0)
	settle(w, a)
	wantSameLive(t, w.state(0), newOracle(traces, func(trace.FuncKey) int { return 0 }))
	if n := loadCalls(w.state(0)); n != 40 {
		t.Errorf("%d calls, want 40", n)
	}
}
