package simulate_test

import (
	"runtime"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// crowd is a program of very many ranks.
const crowd = `
name = "crowd"
steps = 2
iterations = 4
[[program]]
name = "crowd"
ranks = 10000
body = ["step"]
[program.functions]
step = { time = { normal = [50, 5] }, calls = ["9 f", "swap", "all"] }
f = { time = { lognormal = [100, 0.2] }, message = { fixed = 4096 } }
swap = { kind = "exchange", neighbors = [-1, 1], time = { fixed = 10 } }
all = { kind = "collective", time = { fixed = 20 } }
[[program.counter]]
name = "load"
seconds = 0.001
value = { normal = [50, 5] }
[[trouble]]
name = "slow"
kind = "slow-rank"
ranks = [77]
factor = 3
`

// TestMemoryOfTenThousandRanks reads all ranks, each of which gives its
// memory back: what stays is what ranks know of each other in a step, not the
// events.
func TestMemoryOfTenThousandRanks(t *testing.T) {
	tracetest.SkipShort(t, "simulates 10,000 ranks")
	if tracetest.WithoutRace(t) {
		return
	}
	s := parse(t, crowd)
	before := heap()
	run := simulate.New(s)
	var events int64
	for run.Advance() {
		for _, of := range run.Streams() {
			step, err := of.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			events += int64(step.Funcs + step.Comms + step.Counters)
			of.Release()
		}
	}
	const bound = 4 << 10 // bytes for each rank
	held, all := heap()-before, events/int64(s.Steps)*32
	t.Logf("%d MB are held, %d for each rank; the events of a step would take %d MB", held>>20, held/10_000, all>>20)
	if held > bound*10_000 || all < held {
		t.Errorf("%d bytes are held, want at most %d; the events of a step would take %d", held, bound*10_000, all)
	}
	runtime.KeepAlive(run)
}

// TestMemoryOfWritingManyRanks compares two sizes of the same
// program.
func TestMemoryOfWritingManyRanks(t *testing.T) {
	tracetest.SkipShort(t, "simulates large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	f := func(ranks int) (perRank int64) {
		s := parse(t, crowd)
		s.Steps, s.Iterations = 2, 20
		if err := s.Resize(ranks); err != nil {
			t.Fatal(err)
		}
		before, most := heap(), int64(0)
		to := simulate.Target{Dir: t.TempDir()}
		to.OnStep = func(w simulate.Stats) {
			if w.Steps%(ranks/2) == 0 {
				most = max(most, heap()-before)
			}
		}
		done, err := simulate.New(s).Write(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		all := done.Events / int64(s.Steps) * 32
		t.Logf("%d ranks: %d kB are held; the events of a step would take %d kB", ranks, most>>10, all>>10)
		return most / int64(ranks)
	}
	if few, many := f(50), f(300); many > few || many > 16<<10 {
		t.Errorf("each of 50 ranks needs %d bytes, each of 300 %d", few, many)
	}
}

// TestEventsAllocateNothing counts allocations of a step of thousands of events
// when memory of earlier steps can be used again.
func TestEventsAllocateNothing(t *testing.T) {
	f := func(s *scenario.Scenario, limit float64) {
		t.Helper()
		s.Steps = 40
		run := simulate.New(s)
		events := 0
		step := func() {
			if !run.Advance() {
				t.Fatal("there are too few steps")
			}
			for _, of := range run.Streams() {
				step, err := of.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				events = step.Funcs + step.Comms + step.Counters
			}
		}
		for range 20 {
			step()
		}
		ranks := float64(len(run.Streams()))
		if n := testing.AllocsPerRun(15, step) / ranks; n > limit || events < 300 {
			t.Errorf("%s: a step of about %d events allocates %v times, want at most %v", s.Name, events, n, limit)
		}
	}
	f(parse(t, busy), 3)
	quiet := func(name string) *scenario.Scenario { return without(builtin(t, name, 4, 40)) }
	f(quiet("slow-rank"), 3)
	f(quiet("threads"), 3)
	f(quiet("gpu-clock-drop"), 3)
	f(quiet("message-size"), 3)
}
