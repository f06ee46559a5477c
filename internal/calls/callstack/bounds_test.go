package callstack_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestTrimKeepsWindowOpenAndWaitingCalls(t *testing.T) {
	f := func(window int, events, want string) {
		t.Helper()
		cfg := config()
		cfg.Window = window
		got, counted := build(t, cfg, events, nil, keptCalls)
		compare(t, fmt.Sprintf("window %d: %s", window, events), got, want)
		compare(t, events, counted, "")
	}
	const seven = "enter a 1; exit a 2; enter b 3; exit b 4; enter c 5; exit c 6; enter d 7; exit d 8; enter e 9; exit e 10; enter f 11; " +
		"exit f 12; enter g 13; exit g 14"
	f(0, seven, "")
	f(1, seven, "g")
	f(4, seven, "d e f g")
	f(7, seven, "a b c d e f g")
	f(100, seven, "a b c d e f g")
	// Later steps continue with the window.
	f(4, seven+"| | enter h 20; exit h 21", "d e f g | d e f g | e f g h")
	// In order of entry, not of exit.
	f(2, "enter a 1; enter b 2; exit b 3; enter c 4; exit c 5; exit a 6", "b c")
	// Open calls stay even if other calls lie between them and the window.
	f(1, "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6 | exit b 7 | exit a 8", "a b d | a d | d")
	f(0, "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6 | exit b 7 | exit a 8", "a b | a |")
	// Those that wait stay with all above them.
	f(1, "enter a 1; enter x 1; exit x 1; enter b 2; id 1 2; exit b 3; exit a 4; enter c 5; exit c 6; enter d 7; exit d 8", "a b d")
	// Each thread has a separate window.
	f(1, "@0 enter a 1; exit a 2; enter b 3; exit b 4; @1 enter c 1; exit c 2; @2 enter d 1; enter e 2 | @1 enter f 3; exit f 4",
		"b; @1 c; @2 d e | b; @1 f; @2 d e")
}

func TestSidesOfLongCallsAreBounded(t *testing.T) {
	f := func(most int, events, want, counted string) {
		t.Helper()
		cfg := config()
		cfg.Window, cfg.MaxSides = 0, most
		got, n := build(t, cfg, events, nil, sides)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	const events = "enter main 1; counter 1=1 1; counter 1=2 2; enter f 3; counter 1=3 3; exit f 4; counter 1=4 5 | counter 1=5 6 | exit " +
		"main 7"
	f(4, events, "main(counter 1=1 1; counter 1=2 2; counter 1=4 5) | main(counter 1=1 1; counter 1=2 2; counter 1=4 5; counter 1=5 6) |", "")
	// The oldest go first; those of calls that are not kept take no room.
	f(3, events, "main(counter 1=1 1; counter 1=2 2; counter 1=4 5) | main(counter 1=2 2; counter 1=4 5; counter 1=5 6) |",
		"sides-forgotten 1")
	f(1, events, "main(counter 1=4 5) | main(counter 1=5 6) |", "sides-forgotten 3")
	f(0, events, "|  |", "sides-forgotten 4")
}

// TestTrimKeepsSidesOfWindowAndOpenCalls has calls
// that are held for another reason: they wait for their partner.
func TestTrimKeepsSidesOfWindowAndOpenCalls(t *testing.T) {
	f := func(window, most int, events, want string) {
		t.Helper()
		cfg := config()
		cfg.Window, cfg.MaxSides = window, most
		got, counted := build(t, cfg, events, nil, func(s *script, b *callstack.Builder) string { return keptCalls(s, b) + ": " + sides(s, b) })
		compare(t, fmt.Sprintf("window %d: %s", window, events), got, want)
		compare(t, events, counted, "")
	}
	const launch = "enter main 1; counter 1=1 1; enter launch 2; counter 1=2 2; id 7 3; exit launch 4; send 1/1/1 5; exit main 6; enter " +
		"x 7; counter 1=3 7; exit x 8"
	f(3, 9, launch, "main launch x: main(counter 1=1 1; send 1/1/1 5) launch(counter 1=2 2; id 7 3) x(counter 1=3 7)")
	f(2, 9, launch, "main launch x: launch(counter 1=2 2; id 7 3) x(counter 1=3 7)")
	f(1, 9, launch, "main launch x: x(counter 1=3 7)")
	f(0, 9, launch, "main launch:")
	// They take no room.
	f(1, 1, launch, "main launch x: x(counter 1=3 7)")
	f(0, 0, launch, "main launch:")
	// When the call leaves the window they go, and the call stays until its
	// partner is there.
	f(1, 9, "enter launch 1; counter 1=1 1; id 7 1; exit launch 2 | | enter x 3; exit x 4 | @1 enter k 5; id 7 5; exit k 6",
		"launch: launch(counter 1=1 1; id 7 1) | launch: launch(counter 1=1 1; id 7 1) | launch x: | x; @1 k: @1 k(id 7 5)")
	// An open call keeps all its sides, the call that it is joined to keeps none.
	f(0, 9, "enter launch 1; counter 1=1 1; id 7 1; exit launch 2; @1 enter k 3; id 7 3; counter 1=2 4; enter l 5; counter 1=3 5; exit l "+
		"6 | @1 exit k 7",
		"launch; @1 k: @1 k(id 7 3; counter 1=2 4) | :")
	f(0, 9, "enter main 1; counter 1=1 1; enter launch 2; counter 1=2 2; id 7 2; exit launch 3 | counter 1=3 4",
		"main launch: main(counter 1=1 1) | main launch: main(counter 1=1 1; counter 1=3 4)")
}

// TestManyStepsEqualModel compares the builder with a model that keeps everything and
// finds calls by id.
func TestManyStepsEqualModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 2000)
	for range tracetest.Cases(40, 10) {
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		checkAgainstModel(t, data)
		if t.Failed() {
			return
		}
	}
}

// kernels is the text of n launches with their kernels.
func kernels(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "@0 enter launch 2; id %d 3; exit launch 4; @1 enter k 5; id %[1]d 5; exit k 6; ", i)
	}
	return text.String()
}

// addShifted adds the events of a step, all of them later by some time.
func addShifted(b *callstack.Builder, step int, batches []trace.Batch, later trace.Ticks) {
	b.Begin(step)
	for _, batch := range batches {
		for i := range batch.Events {
			batch.Events[i].Time += later
		}
		b.Add(batch.Thread, batch.Events)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const steps, calls, counters = 2000, 100, 10
	cfg := config()
	cfg.MaxSides = 64
	var counts tally.Tally
	b := callstack.NewBuilder(cfg, &counts)
	// Two calls never end. Every step has ids that find their kernels,
	// counters of a call that never ends, and calls that lose their exits.
	s := parse(t, "@0 enter main 1; @1 enter stream 1 |"+kernels(calls)+
		strings.Repeat("@0 counter 1=1 8; ", counters)+"@0 enter f 8; enter lost 9; exit f 9; @1 enter f 8; enter lost 9; exit f 9")
	addShifted(b, 0, s.steps[0], 0)
	b.Trim()
	for step := 1; step <= steps; step++ {
		addShifted(b, step, s.steps[1], 10)
		b.Trim()
		for _, th := range b.Threads() {
			if n := len(th.Calls); n > cfg.Window+1 {
				t.Fatalf("step %d: thread %d holds %d calls, want the window of %d and one that is open", step, th.ID, n, cfg.Window)
			}
			if n := len(th.Sides); n > cfg.MaxSides {
				t.Fatalf("step %d: thread %d holds %d messages and counters, want no more than %d", step, th.ID, n, cfg.MaxSides)
			}
			if n, most := cap(th.Calls), 4*(calls+cfg.Window); n > most {
				t.Fatalf("step %d: thread %d has room for %d calls, want no more than %d", step, th.ID, n, most)
			}
			if n, most := cap(th.Sides), 4*(cfg.MaxSides+counters+calls); n > most {
				t.Fatalf("step %d: thread %d has room for %d messages and counters, want no more than %d", step, th.ID, n, most)
			}
			if len(th.Done) != 0 || len(th.Links) != 0 {
				t.Fatalf("step %d: thread %d kept %d ended calls and %d joins", step, th.ID, len(th.Done), len(th.Links))
			}
		}
	}
	if b.Unmatched() != 0 || counts.Count(tally.ExitLost) != 2*steps {
		t.Errorf("%d ids wait, counted %s; want none, and %d lost exits", b.Unmatched(), totals(&counts), 2*steps)
	}
	if n := counts.Count(tally.SidesForgotten); n < (steps-10)*counters {
		t.Errorf("%d counters were forgotten, want nearly all of %d", n, steps*counters)
	}
}

func TestBuildingDoesNotAllocate(t *testing.T) {
	f := func(what, begin, step string) {
		t.Helper()
		s := parse(t, begin+"|"+step)
		b := callstack.NewBuilder(config(), nil)
		addShifted(b, 0, s.steps[0], 0)
		b.Trim()
		calls := 0
		next := func() {
			addShifted(b, 1, s.steps[1], 1000)
			calls = 0
			for _, th := range b.Threads() {
				calls += len(th.Done)
			}
			b.Trim()
		}
		for range 500 { // until there is room for all
			next()
		}
		if n := testing.AllocsPerRun(100, next); n != 0 || calls < 100 {
			t.Errorf("%s: a step of %d calls made %v allocations, want none", what, calls, n)
		}
	}
	f("calls", "enter main 1", strings.Repeat("enter f 2; enter g 3; exit g 4; exit f 5; ", 100))
	f("messages and counters", "enter main 1", strings.Repeat("enter f 2; counter 1=1 3; send 1/1/1 3; node 1=1 3; exit f 4; counter 1=1 5;",
		100))
	f("lost exits", "enter main 1", strings.Repeat("enter f 2; enter g 3; exit h 4; exit f 5; ", 100))
	f("kernels", "@0 enter main 1", kernels(100))
	f("kernels of the step before", "@0 enter main 1; enter launch 2; id 7 2; exit launch 3; enter launch 2; id 8 2; exit launch 3",
		"@1 enter k 5; id 7 5; exit k 6; enter k 5; id 8 5; exit k 6; @0 "+strings.Repeat("enter f 2; exit f 3;",
			100)+"enter launch 7; id 7 7; exit launch 8; enter launch 9; id 8 9; exit launch 10")
}

// TestQueueDoesNotGrow counts bytes: a list that grows does so too
// rarely to be seen in the mean number of allocations.
func TestQueueDoesNotGrow(t *testing.T) {
	f := func(what string, steps int, more uint64, step string) {
		t.Helper()
		s := parse(t, step)
		cfg := config()
		cfg.Window, cfg.MaxSides, cfg.MaxPinned = 0, 0, 64
		b := callstack.NewBuilder(cfg, nil)
		run := func(n int) {
			for i := range n {
				addShifted(b, i, s.steps[0], 1000)
				b.Trim()
				for _, batch := range s.steps[0] {
					for i := range batch.Events {
						batch.Events[i].Value += more
					}
				}
			}
		}
		run(steps) // until there is room for all
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(steps)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<10 {
			t.Errorf("%s: %d steps allocated %d bytes, want next to none", what, steps, n)
		}
	}
	f("kernels", 1000, 50, kernels(50))
	f("a kernel at once", 5000, 1, kernels(1))
	f("a kernel at once, with the same id each time", 5000, 0, kernels(1))
	f("the same id on one thread", 100, 0, strings.Repeat("enter f 1; id 7 1; exit f 1; ", 50))
}

func TestLargeSetbackRestartsThread(t *testing.T) {
	var counts tally.Tally
	b := callstack.NewBuilder(callstack.Default(trace.Microsecond), &counts)
	event := func(kind trace.Kind, fn uint32, time trace.Ticks) trace.Event {
		return trace.Event{Kind: kind, ID: fn, Time: time}
	}
	const late = 1_000_000_000
	b.Begin(0)
	b.Add(0, []trace.Event{event(trace.Enter, 1, late), event(trace.Enter, 2, late+5), event(trace.Exit, 2, late+9)})
	b.Trim()
	b.Begin(1) // an hour earlier, or the time before was wrong
	b.Add(0, []trace.Event{event(trace.Enter, 2, 100), event(trace.Exit, 2, 107), event(trace.Exit, 1, 110)})
	th := b.Threads()[0]
	if len(th.Done) != 2 || b.OpenCalls() != 0 || counts.Count(tally.TimeBackwards) != 1 {
		t.Fatalf("%d calls ended, %d are open, counted %d", len(th.Done), b.OpenCalls(), counts.Count(tally.TimeBackwards))
	}
	if inner := &th.Calls[th.Done[0]]; inner.Lost() || inner.Inclusive() != 7 {
		t.Errorf("a call after it took %d, lost %v, want 7", inner.Inclusive(), inner.Lost())
	}
	if outer := &th.Calls[th.Done[1]]; !outer.Lost() {
		t.Error("a call across it counts as sound")
	}
}
