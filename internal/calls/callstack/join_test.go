package callstack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

func TestKernelIsJoinedWithLaunch(t *testing.T) {
	f := func(events, want string, left string) {
		t.Helper()
		got, counted := build(t, config(), events, joinedCalls, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
		output, _ := build(t, config(), events, nil, unmatchedIDs)
		compare(t, events, output[strings.LastIndex(output, "|")+1:], left)
	}
	f("@0 enter main 1; enter launch 2; id 42 3; exit launch 4; @1 enter k 5; id 42 5; exit k 6", "@0 main/launch = @1 k", "0")
	// The kernel's thread comes before the launch's: the original aborts.
	f("@5 enter main 1; enter launch 2; id 42 3; exit launch 4; @1 enter k 5; id 42 5; exit k 6", "@1 k = @5 main/launch", "0")
	// The kernel ends before the launch does.
	f("@0 enter main 1; enter launch 2; id 42 3; @1 enter k 5; id 42 5; exit k 6", "@0 main/launch = @1 k", "0")
	f("@5 enter launch 2; id 42 3; @1 enter k 5; id 42 5; exit k 6 | @5 exit launch 9 | ", "@1 k = @5 launch | @1 k = @5 launch |", "0")
	// Several kernels of one launch, of several threads.
	f("@0 enter launch 1; id 1 2; id 2 2; id 3 2; exit launch 3; @1 enter k 4; id 1 4; exit k 5; enter l 6; id 3 6; exit l 7; @2 enter m "+
		"4; id 2 5; exit m 6",
		"@0 launch = @1 k, @0 launch = @1 l, @0 launch = @2 m", "0")
	// Several launches, whose kernels come in another order.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; @1 enter k 5; id 2 5; exit k 6; enter l 7; id 1 7; exit l 8",
		"@0 a = @1 l, @0 b = @1 k", "0")
	// A kernel that two launches lead to.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; @1 enter k 5; id 1 5; id 2 5; exit k 6", "@0 a = @1 k, @0 b = @1 k", "0")
	// Each id belongs to the innermost call.
	f("@0 enter main 1; id 1 1; enter a 2; id 2 2; exit a 3; @1 enter k 4; id 1 4; exit k 5; enter l 6; id 2 6; exit l 7",
		"@0 main = @1 k, @0 main/a = @1 l", "0")
	// Two calls of one thread are not a pair; the later one keeps waiting.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 1 3; exit b 4", "", "1")
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 1 3; exit b 4; @1 enter k 5; id 1 5; exit k 6", "@0 b = @1 k", "0")
	// A pair is complete: a third call with the same id waits again.
	f("@0 enter a 1; id 1 1; exit a 2; @1 enter k 3; id 1 3; exit k 4; enter l 5; id 1 5; exit l 6", "@0 a = @1 k", "1")
	// Without a partner, or outside of any call.
	f("@0 enter a 1; id 1 1; exit a 2; @1 enter k 3; id 2 3; exit k 4", "", "2")
}

func TestLaunchWaitsWithItsStack(t *testing.T) {
	f := func(events, wantJoined, wantHeld string) {
		t.Helper()
		cfg := config()
		cfg.Window = 0
		got, counted := build(t, cfg, events, joinedCalls, nil)
		compare(t, events, got, wantJoined)
		compare(t, events, counted, "")
		got, _ = build(t, cfg, events, nil, keptCalls)
		compare(t, events, got, wantHeld)
	}
	launch := "@%d enter main 1; enter x 2; exit x 3; enter f 4; enter y 5; exit y 6; enter launch 7; id 42 8; exit launch 9; exit f 10; " +
		"exit main 11"
	kernel := "@%d enter k 20; id 42 20; exit k 21 |"
	// The launch is ten steps older than the kernel, and all of it has ended.
	idle := strings.Repeat("|", 10)
	f(fmt.Sprintf(launch+idle+kernel, 0, 1), idle+" @0 main/f/launch = @1 k |", strings.Repeat("main f launch | ", 10)+" |")
	f(fmt.Sprintf(launch+idle+kernel, 9, 1), idle+" @1 k = @9 main/f/launch |", strings.Repeat("@9 main f launch | ", 10)+" |")
	// The kernel waits for a launch that comes later.
	f(fmt.Sprintf(kernel, 1)+idle+fmt.Sprintf(launch, 0)+"|", "| "+idle+" @0 main/f/launch = @1 k |",
		"@1 k |"+strings.Repeat(" @1 k |", 10)+" |")
	// While one of them is open both stay, and the join with them.
	f("@0 enter main 1; enter launch 2; id 1 3; exit launch 4; exit main 5 | @1 enter k 6; id 1 6 | | @1 exit k 7 |",
		"| @0 main/launch = @1 k | @0 main/launch = @1 k | @0 main/launch = @1 k |",
		"main launch | main launch; @1 k | main launch; @1 k |  |")
	// Other threads and calls make no difference.
	noise := "@0 enter x 12; exit x 12; @2 enter z 1; exit z 1 |"
	f(fmt.Sprintf(launch, 0)+"|"+noise+noise+fmt.Sprintf(kernel, 1), "|  |  | @0 main/f/launch = @1 k |",
		"main f launch | main f launch | main f launch |  |")
}

// TestParentWaitsForAllLaunches is the original's test of
// correlation matching: a call with two ids, its parent with one.
func TestParentWaitsForAllLaunches(t *testing.T) {
	cfg := config()
	cfg.Window = 0
	const events = "@0 enter grand 1; enter parent 2; id 3 2; enter cpu 3; id 1 4; id 2 4; exit cpu 5; exit parent 6; exit grand 7 |" +
		"@1 enter k 10; id 1 10; exit k 11 | @1 enter l 12; id 2 12; exit l 13 | @1 enter m 14; id 3 14; exit m 15"
	got, _ := build(t, cfg, events, nil, func(s *script, b *callstack.Builder) string { return unmatchedIDs(s, b) + ": " + keptCalls(s, b) })
	compare(t, events, got, "3: grand parent cpu | 2: grand parent cpu | 1: grand parent | 0:")
}

func TestUncoupledFunctions(t *testing.T) {
	const events = "@0 enter launch 1; id 42 2; exit launch 3; @1 enter k 4; id 42 4; exit k 5"
	f := func(left string, pair string, uncoupled ...string) {
		t.Helper()
		names := parse(t, events).names
		cfg := config()
		cfg.IgnoresCorrelation = func(id trace.FuncID) bool { return slices.Contains(uncoupled, names[id]) }
		got, counted := build(t, cfg, events, func(s *script, b *callstack.Builder) string {
			return unmatchedIDs(s, b) + " " + joinedCalls(s, b) + " " + sides(s, b)
		}, nil)
		compare(t, fmt.Sprint(uncoupled), got, left+" "+pair+" launch(id 42 2); @1 k(id 42 4)")
		compare(t, fmt.Sprint(uncoupled), counted, "")
	}
	f("0", "@0 launch = @1 k")
	f("1", "", "launch")
	f("1", "", "k")
	f("0", "", "launch", "k")
}

func TestWaitingIDsAreBounded(t *testing.T) {
	f := func(events, want, left, counted string) {
		t.Helper()
		cfg := config()
		cfg.MaxPinned = 2
		got, n := build(t, cfg, events, func(s *script, b *callstack.Builder) string { return unmatchedIDs(s, b) + " " + joinedCalls(s, b) }, nil)
		compare(t, events, got, left+" "+want)
		compare(t, events, n, counted)
	}
	launches := "@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; "
	f(launches, "", "2", "")
	f(launches+"enter c 5; id 3 5; exit c 6", "", "2", "correlation-dropped 1")
	// What waits is still joined, and makes room.
	f(launches+"enter c 5; id 3 5; exit c 6; @1 enter k 7; id 2 7; exit k 8; enter l 9; id 4 9; exit l 10", "@0 b = @1 k", "2",
		"correlation-dropped 1")
	// The oldest is given up, not the newest.
	f(launches+"enter c 5; id 3 5; exit c 6; @1 enter k 7; id 3 7; exit k 8; enter l 9; id 1 9; exit l 10", "@0 c = @1 k", "2",
		"correlation-dropped 1")
	f(launches+"@1 enter k 5; id 3 5; exit k 6; enter l 7; id 4 7; exit l 8; @2 enter m 9; id 4 9; exit m 10; enter n 11; id 3 11; exit n 12",
		"@1 k = @2 n, @1 l = @2 m", "0", "correlation-dropped 2")
	// The same id again takes no room.
	f(launches+"enter c 5; id 2 5; exit c 6; @1 enter k 7; id 2 7; exit k 8", "@0 c = @1 k", "1", "")
}

// TestRepeatedIDHasAgeOfWaitingCall has ids that were there
// before: of the calls that wait, the one that came first is given up.
func TestRepeatedIDHasAgeOfWaitingCall(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		cfg := config()
		cfg.MaxPinned = 2
		got, counted := build(t, cfg, events, joinedCalls, nil)
		compare(t, events, got[strings.LastIndex(got, "|")+1:], want)
		compare(t, events, counted, "correlation-dropped 1")
	}
	const kernels = "| @1 enter k 21; id 1 21; exit k 22; enter l 23; id 3 23; exit l 24"
	// On the same thread, while it waits.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; enter c 5; id 1 5; exit c 6; enter d 7; id 3 7; exit d 8"+kernels,
		"@0 c = @1 k, @0 d = @1 l")
	// After it was joined.
	f("@0 enter a 1; id 1 1; exit a 2; @1 enter x 3; id 1 3; exit x 4 |"+
		"@0 enter b 5; id 2 5; exit b 6; enter c 7; id 1 7; exit c 8; enter d 9; id 3 9; exit d 10"+kernels, "@0 c = @1 k, @0 d = @1 l")
}

// TestJoiningSurvivesManyUnmatchedIDs has in each step many more
// launches without a kernel than may wait, and after them one whose kernel
// comes in the next step.
func TestJoiningSurvivesManyUnmatchedIDs(t *testing.T) {
	const steps, flood, most = 50, 500, 100
	cfg := config()
	cfg.MaxPinned = most
	cfg.Window = 0
	var counts tally.Tally
	b := callstack.NewBuilder(cfg, &counts)
	call := func(fn uint32, id, time int) []trace.Event {
		return []trace.Event{
			{Kind: trace.Enter, ID: fn, Time: trace.Ticks(time)},
			{Kind: trace.Count, ID: idCounter, Value: uint64(id), Time: trace.Ticks(time)},
			{Kind: trace.Exit, ID: fn, Time: trace.Ticks(time)},
		}
	}
	const first = 1 << 20 // ids from here on have kernels
	for step := range steps {
		var events []trace.Event
		want := 0
		if step > 0 {
			events, want = call(1, first+step-1, step+1), 1
		}
		for i := range flood {
			events = append(events, call(2, flood*step+i, step+1)...)
		}
		b.Begin(step)
		b.Add(0, events)
		b.Add(1, call(3, first+step, step+1))
		if got := len(b.Threads()[0].Links); got != want {
			t.Fatalf("step %d: %d kernels were joined, want %d", step, got, want)
		}
		b.Trim()
		if waits, calls := b.Unmatched(), len(b.Threads()[0].Calls)+len(b.Threads()[1].Calls); waits != most || calls != most {
			t.Fatalf("step %d: %d ids wait and %d calls are held, want %d", step, waits, calls, most)
		}
	}
	want := fmt.Sprintf("correlation-dropped %d", steps*flood+1-most) // the last launch waits on
	compare(t, "flood", totals(&counts), want)
}
