package simulate_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// checkStacks puts the events of a rank together to calls, and reports whatever
// does not fit: nothing is tallied, and all calls end.
func checkStacks(t *testing.T, r *traced) {
	t.Helper()
	var counts tally.Tally
	cfg := callstack.Default(trace.Microsecond)
	cfg.Role = func(id trace.CounterID) callstack.CounterRole {
		switch name := r.counter(id); {
		case name == "Correlation ID":
			return callstack.Correlation
		case strings.HasPrefix(name, "monitoring: "):
			return callstack.NodeState
		}
		return callstack.OfCall
	}
	b := callstack.NewBuilder(cfg, &counts)
	done := 0
	for i := range r.steps {
		b.Begin(i)
		s := clone(&r.steps[i])
		for j := range s.Batches {
			b.Add(s.Batches[j].Thread, s.Batches[j].Events)
		}
		for _, thread := range b.Threads() {
			done += len(thread.Done)
		}
		b.Trim()
	}
	if all := maps.Collect(counts.All()); len(all) > 0 {
		t.Errorf("rank %d: tallied %v, want nothing", r.rank, all)
	}
	if b.OpenCalls() > 0 || b.Unmatched() > 0 || done != len(r.calls) {
		t.Errorf("rank %d: %d calls do not end, %d launches have no kernel, %d end, want %d", r.rank, b.OpenCalls(), b.Unmatched(), done,
			len(r.calls))
	}
}

// checkSteps looks at what steps promise: times never go back on a thread, rows
// are numbered from 0 on in each table, counts and readings are those of the
// events, and all has names.
func checkSteps(t *testing.T, r *traced) {
	t.Helper()
	last := make(map[trace.Thread]trace.Ticks)
	for i := range r.steps {
		s := &r.steps[i]
		if s.Index != i {
			t.Errorf("rank %d: step %d has the number %d", r.rank, i, s.Index)
		}
		var rows [3][]uint32 // of functions, messages, counters
		var readings []trace.Batch
		threads := make([]trace.Thread, 0, len(s.Batches))
		for _, b := range s.Batches {
			if b.Program != r.program || b.Rank != r.rank || len(b.Events) == 0 {
				t.Errorf("rank %d step %d: a batch of program %d rank %d with %d events", r.rank, i, b.Program, b.Rank, len(b.Events))
			}
			threads = append(threads, b.Thread)
			read := trace.Batch{Program: b.Program, Rank: b.Rank, Thread: b.Thread}
			for _, e := range b.Events {
				if e.Time < last[b.Thread] {
					t.Fatalf("rank %d step %d thread %d: %s at %d comes after %d", r.rank, i, b.Thread, e.Kind, e.Time, last[b.Thread])
				}
				last[b.Thread] = e.Time
				switch e.Kind {
				case trace.Enter, trace.Exit:
					rows[0] = append(rows[0], e.Row)
					if _, ok := r.names.Func(r.rank, e.Func()); !ok {
						t.Errorf("rank %d: function %d has no name", r.rank, e.Func())
					}
				case trace.Send, trace.Recv:
					rows[1] = append(rows[1], e.Row)
				default:
					rows[2] = append(rows[2], e.Row)
					read.Events = append(read.Events, e)
					if _, ok := r.names.Counter(r.rank, e.Counter()); !ok {
						t.Errorf("rank %d: counter %d has no name", r.rank, e.Counter())
					}
				}
			}
			if len(read.Events) > 0 {
				readings = append(readings, read)
			}
		}
		if !slices.IsSorted(threads) || len(slices.Compact(threads)) != len(s.Batches) {
			t.Errorf("rank %d step %d: batches of threads %v, want each once, in order", r.rank, i, threads)
		}
		for table, of := range rows {
			slices.Sort(of)
			for n, row := range of {
				if row != uint32(n) {
					t.Fatalf("rank %d step %d table %d: row %d is missing, or there twice", r.rank, i, table, n)
				}
			}
		}
		if s.Funcs != len(rows[0]) || s.Comms != len(rows[1]) || s.Counters != len(rows[2]) {
			t.Errorf("rank %d step %d: it counts %d, %d and %d events, but has %d, %d and %d", r.rank, i, s.Funcs, s.Comms, s.Counters,
				len(rows[0]), len(rows[1]), len(rows[2]))
		}
		if !slices.EqualFunc(s.Readings, readings, sameBatch) {
			t.Errorf("rank %d step %d: the readings are not the counters among the events", r.rank, i)
		}
		if (len(s.Metadata) > 0) != (i == 0) {
			t.Errorf("rank %d step %d: %d facts; want some in the first step only", r.rank, i, len(s.Metadata))
		}
	}
}

func sameBatch(a, b trace.Batch) bool {
	return a.Program == b.Program && a.Rank == b.Rank && a.Thread == b.Thread && slices.Equal(a.Events, b.Events)
}

func sameStep(a, b *trace.Step) bool {
	return a.Index == b.Index && a.Funcs == b.Funcs && a.Comms == b.Comms && a.Counters == b.Counters &&
		slices.EqualFunc(a.Batches, b.Batches, sameBatch) && slices.EqualFunc(a.Readings, b.Readings, sameBatch) &&
		slices.Equal(a.Metadata, b.Metadata)
}

func TestCallsNestAndEndInEveryScenario(t *testing.T) {
	each(t, func(t *testing.T, s *scenario.Scenario) {
		for _, r := range record(t, s) {
			checkStacks(t, r)
			checkSteps(t, r)
			checkTables(t, r)
		}
	})
}

// checkTables compares rows with docs/formats/tau.md, which describes how TAU orders
// its tables: functions thread by thread, messages and counters by their times.
func checkTables(t *testing.T, r *traced) {
	t.Helper()
	for i := range r.steps {
		var functions uint32
		sides := map[trace.Kind][]trace.Event{}
		for _, b := range r.steps[i].Batches {
			for _, e := range b.Events {
				switch e.Kind {
				case trace.Enter, trace.Exit:
					if e.Row != functions {
						t.Fatalf("rank %d step %d thread %d: a function has row %d, want %d", r.rank, i, b.Thread, e.Row, functions)
					}
					functions++
				case trace.Count:
					sides[trace.Count] = append(sides[trace.Count], e)
				default:
					sides[trace.Send] = append(sides[trace.Send], e)
				}
			}
		}
		for _, list := range sides {
			slices.SortFunc(list, func(a, b trace.Event) int { return cmp.Compare(a.Row, b.Row) })
			if !slices.IsSortedFunc(list, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) }) {
				t.Errorf("rank %d step %d: rows of messages or counters are not in order of time", r.rank, i)
			}
		}
	}
}

// TestMainEnclosesAllCalls looks at the first calls and the last step.
func TestMainEnclosesAllCalls(t *testing.T) {
	for _, r := range record(t, parse(t, busy)) {
		root, body := r.calls[0], r.calls[1]
		if root.function != ".TAU application" || body.function != "main" || root.entry != body.entry || root.exit != body.exit {
			t.Fatalf("rank %d begins with %s and %s", r.rank, root.function, body.function)
		}
		for _, c := range r.calls {
			if c.thread == 0 && (c.entry < body.entry || c.exit > body.exit) {
				t.Errorf("rank %d: %s from %d to %d is not in main", r.rank, c.function, c.entry, c.exit)
			}
		}
		if root.own != 0 || body.own != 0 {
			t.Errorf("rank %d: main takes %d by itself, want 0", r.rank, body.own)
		}
		if end := r.ends[len(r.ends)-1]; end != root.exit {
			t.Errorf("rank %d: the last step ends at %d, the program at %d", r.rank, end, root.exit)
		}
	}
}

// TestCallCountsMatchScenario counts calls: lists with
// numbers, every, setup and finish.
func TestCallCountsMatchScenario(t *testing.T) {
	s := parse(t, busy)
	iterations := s.Steps * s.Iterations
	want := map[string]int{
		".TAU application": 1, "main": 1, "init": 1, "end": 1, "iterate": iterations, "compute": 3 * iterations,
		"look": iterations / 2, "tidy": 2 * iterations, "leaf": 2 * iterations, "region": iterations,
		"strip": 2 * 3 * iterations, "launch": iterations, "kernel": iterations, "sync": iterations, "gather": iterations,
	}
	for _, r := range record(t, s) {
		got := make(map[string]int)
		for _, c := range r.calls {
			got[c.function]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("rank %d calls %v, want %v", r.rank, got, want)
		}
		if n := len(r.readings("cache misses")); n != 3*iterations {
			t.Errorf("rank %d: the counter of compute is read %d times, want %d", r.rank, n, 3*iterations)
		}
	}
}

// TestNodeCountersAreReadInIntervals allows for an iteration, at whose end
// they are read.
func TestNodeCountersAreReadInIntervals(t *testing.T) {
	s := parse(t, busy)
	for _, r := range record(t, s) {
		f := func(name string, interval trace.Ticks) {
			t.Helper()
			events := r.readings("monitoring: " + name)
			if len(events) < 10 {
				t.Fatalf("rank %d: %s is read %d times", r.rank, name, len(events))
			}
			for i := 1; i < len(events); i++ {
				if d := events[i].Time - events[i-1].Time; d < interval || d > interval+8000 {
					t.Errorf("rank %d: %s is read after %d, want %d or an iteration more", r.rank, name, d, interval)
				}
			}
		}
		f("load", 4000)
		f("clock", 10_000)
	}
}

func TestMetadataHasHostsAndThreads(t *testing.T) {
	s := parse(t, busy)
	for _, r := range record(t, s) {
		host := map[bool]string{true: "a", false: "b"}[r.rank < 4]
		want := []trace.Metadata{
			{Key: "Hostname", Value: host},
			{Key: "Executable", Value: "busy"},
			{Thread: 4, Key: "CUDA Device", Value: "0"},
			{Thread: 4, Key: "CUDA Context", Value: "1"},
			{Thread: 4, Key: "CUDA Stream", Value: "0"},
		}
		for i := range want {
			want[i].Rank = r.rank
		}
		if got := r.steps[0].Metadata; !slices.Equal(got, want) || r.host != host {
			t.Errorf("rank %d on %s has %v, want %v", r.rank, r.host, got, want)
		}
		gpu, ok := r.names.GPU(r.rank, 4)
		if _, of := r.names.GPU(r.rank, 2); !ok || of || gpu != (trace.GPU{Device: "0", Context: "1", Stream: "0"}) {
			t.Errorf("rank %d: thread 4 is %+v, %v; thread 2 is a GPU's: %v", r.rank, gpu, ok, of)
		}
		if r.names.Program() != "busy" {
			t.Errorf("rank %d is of program %q", r.rank, r.names.Program())
		}
	}
}
