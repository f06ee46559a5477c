package callstack_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
)

func TestCallTimesAndChildren(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
	}
	f("", "")
	f("enter main 1; exit main 9", "main[1,9]=8")
	f("enter main 1; enter f 2; exit f 5; exit main 9", "main/f[2,5]=3 main[1,9]=5")
	f("enter main 1; enter f 2; exit f 5; enter g 6; exit g 8; exit main 9", "main/f[2,5]=3 main/g[6,8]=2 main[1,9]=3")
	// Only the direct children count.
	f("enter main 1; enter f 2; enter g 3; exit g 5; exit f 7; exit main 9", "main/f/g[3,5]=2 main/f[2,7]=3 main[1,9]=3")
	// Calls without a length.
	f("enter main 1; enter f 1; exit f 1; exit main 1", "main/f[1,1]=0 main[1,1]=0")
	f("enter main 1; enter f 4; exit f 4; enter f 4; exit f 4; exit main 9", "main/f[4,4]=0 main/f[4,4]=0 main[1,9]=8")
	// Recursion.
	f("enter f 1; enter f 2; enter f 3; exit f 4; exit f 6; exit f 9", "f/f/f[3,4]=1 f/f[2,6]=3 f[1,9]=4")
	f("enter f 1; enter g 2; enter f 3; exit f 5; exit g 6; exit f 9", "f/g/f[3,5]=2 f/g[2,6]=2 f[1,9]=4")
	// Threads have nothing to do with each other.
	f("@0 enter main 1; @3 enter w 2; @0 enter f 3; @3 exit w 4; @0 exit f 5; exit main 9", "main/f[3,5]=2 main[1,9]=6; @3 w[2,4]=2")
	f("@3 enter w 2; @1 enter w 3; exit w 5; @3 exit w 4", "@1 w[3,5]=2; @3 w[2,4]=2")
	// The largest times there are.
	f("enter main 1; enter f 2; exit f 9223372036854775806; exit main 9223372036854775807",
		"main/f[2,9223372036854775806]=9223372036854775804 main[1,9223372036854775807]=2")
}

func TestOpenCallContinuesInLaterSteps(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
	}
	f("enter main 1 | exit main 9", "| main[1,9]=8")
	f("enter main 1; enter f 2 | exit f 5; exit main 9", "| main/f[2,5]=3 main[1,9]=5")
	f("enter main 1 | enter f 2; exit f 5 | | enter f 6 | exit f 8; exit main 9", "| main/f[2,5]=3 |  |  | main/f[6,8]=2 main[1,9]=3")
	f("enter f 1; enter f 2 | exit f 3; enter f 4 | exit f 5; exit f 9", "| f/f[2,3]=1 | f/f[4,5]=1 f[1,9]=6")
	f("@0 enter main 1; @1 enter w 2 | @1 enter f 3 | @0 exit main 4 | @1 exit f 6; exit w 9", "|  | main[1,4]=3 | @1 w/f[3,6]=3 w[2,9]=4")
}

func TestOpenCallHasNoExit(t *testing.T) {
	open := func(s *script, b *callstack.Builder) string {
		var calls []string
		for i := range b.Threads()[0].Calls {
			c := &b.Threads()[0].Calls[i]
			if c.IsOpen() != (c.Exit == callstack.Open) || c.Label != callstack.Normal {
				calls = append(calls, "BAD")
			}
			calls = append(calls, s.call(b.Threads()[0], int32(i)))
		}
		return strings.Join(calls, " ")
	}
	const events = "enter main 1; enter f 2; exit f 3; enter g 4 | exit g 5"
	got, _ := build(t, config(), events, open, nil)
	compare(t, events, got, "main[1, main/f[2,3]=1 main/g[4, | main[1, main/f[2,3]=1 main/g[4,5]=1")
}

func TestEventID(t *testing.T) {
	ids := func(s *script, b *callstack.Builder) string {
		return eachThread(b, func(t *callstack.Thread) (calls []string) {
			for _, i := range t.Done {
				c := &t.Calls[i]
				parent := "root"
				if id, ok := c.ParentID(7); ok {
					parent = id.String()
				}
				calls = append(calls, fmt.Sprintf("%s=%v<%s(%d)", s.names[c.Func], c.ID(7), parent, c.Children))
			}
			return calls
		})
	}
	f := func(events, want string) {
		t.Helper()
		cfg := config()
		cfg.Window = 0
		got, _ := build(t, cfg, events, ids, nil)
		compare(t, events, got, want)
	}
	f("enter main 1; exit main 9", "main=7:0:0<root(0)")
	f("enter main 1; enter f 2; exit f 3; enter g 4; exit g 5; exit main 9", "f=7:0:1<7:0:0(0) g=7:0:3<7:0:0(0) main=7:0:0<root(2)")
	f("enter main 1; enter f 2; enter g 4; exit g 5; exit f 6; exit main 9", "g=7:0:2<7:0:1(0) f=7:0:1<7:0:0(1) main=7:0:0<root(1)")
	// Each table numbers its rows separately.
	f("enter main 1; counter 1=1 2; send 1/1/1 2; enter f 2; exit f 3; exit main 9", "f=7:0:1<7:0:0(0) main=7:0:0<root(1)")
	// The threads of a step share its table.
	f("@0 enter main 1; @1 enter w 1; exit w 2; @0 enter f 3; exit f 4", "f=7:0:3<7:0:0(0); @1 w=7:0:1<root(0)")
	// Both are of the step in which they began.
	f("enter main 1 | enter f 2 | exit f 4; enter g 5; exit g 6 | exit main 9",
		"| | f=7:1:0<7:0:0(0) g=7:2:1<7:0:0(0) | main=7:0:0<root(2)")
}

// TestSidesBelongToInnermostCall has events in the order in
// which tau gives them: those at the time of an entry come after it, those at
// the time of an exit before it.
func TestSidesBelongToInnermostCall(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, sides, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	f("enter main 1; counter 7=9 3; send 1/5/800 4; recv 2/6/900 5; exit main 9", "main(counter 7=9 3; send 1/5/800 4; recv 2/6/900 5)", "")
	// The original's own test: comm+counter association.
	f("enter parent 99; counter 1=1 100; send 1/1/1 110; enter child 120; counter 1=2 120; counter 1=3 130; counter 1=4 140; "+
		"send 2/1/1 150; recv 2/1/1 160; counter 1=5 180; exit child 180; send 3/1/1 190; exit parent 191",
		"parent(counter 1=1 100; send 1/1/1 110; send 3/1/1 190) "+
			"child(counter 1=2 120; counter 1=3 130; counter 1=4 140; send 2/1/1 150; recv 2/1/1 160; counter 1=5 180)", "")
	// Both ends belong to it, and calls at the same time are distinguished.
	f("enter main 1; counter 1=1 1; enter f 1; counter 1=2 1; exit f 1; counter 1=3 1; enter g 1; counter 1=4 1; exit g 1; exit main 1",
		"main(counter 1=1 1; counter 1=3 1) f(counter 1=2 1) g(counter 1=4 1)", "")
	f("enter f 1; enter f 1; counter 1=2 1; exit f 1; counter 1=3 2; exit f 2", "f(counter 1=3 2) f(counter 1=2 1)", "")
	// Calls that are open have theirs already.
	f("enter main 1; counter 1=1 2; enter f 3; counter 1=2 4", "main(counter 1=1 2) f(counter 1=2 4)", "")
	// They stay with a call over steps.
	f("enter main 1; counter 1=1 2 | enter f 3; counter 1=2 4 | exit f 5; counter 1=3 6 | exit main 9",
		"main(counter 1=1 2) | main(counter 1=1 2) f(counter 1=2 4) | main(counter 1=1 2; counter 1=3 6) f(counter 1=2 4) | "+
			"main(counter 1=1 2; counter 1=3 6) f(counter 1=2 4)", "")
	// Outside of any call they are counted.
	f("counter 1=1 1; enter main 2; exit main 3; send 1/1/1 4; recv 1/1/1 5", "", "outside-any-call 3")
	f("@0 enter main 1; @1 counter 1=1 2; @0 exit main 9", "", "outside-any-call 1")
	// After a lost exit they belong to the call that still seemed open.
	f("enter main 1; enter f 2; counter 1=1 3; exit main 9; counter 1=2 10", "f(counter 1=1 3)", "exit-lost 1, outside-any-call 1")
}

func TestNodeStateBelongsToNoCall(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, nodeCounters, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
	}
	f("enter main 1; node 1=5 2; counter 1=6 3; exit main 9", "node 1=5 2(main(counter 1=6 3))")
	f("node 1=5 2; node 2=6 2 | | node 1=7 3", "node 1=5 2 node 2=6 2() | () | node 1=7 3()")
	f("@4 node 1=5 1; @0 node 1=7 2", "node 1=7 2 node 1=5 1()") // thread by thread
}

func TestCountersWithoutRoleBelongToCalls(t *testing.T) {
	const events = "@0 enter main 1; id 5 2; node 1=5 2; exit main 9; @1 enter k 1; id 5 2; exit k 3"
	got, counted := build(t, callstack.Default(0), events, func(s *script, b *callstack.Builder) string {
		return fmt.Sprint(sides(s, b), " apart:", len(b.NodeEvents()), " joined:", joinedCalls(s, b))
	}, nil)
	compare(t, events, got, "main(id 5 2; node 1=5 2); @1 k(id 5 2) apart:0 joined:")
	compare(t, events, counted, "")
}

func TestLostExitIsRepaired(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	f("enter main 1; enter f 2; exit main 9", "main/f[2,9]lost main[1,9]lost", "exit-lost 1")
	f("enter main 1; enter f 2; enter g 3; enter h 4; exit f 6; exit main 9",
		"main/f/g/h[4,6]lost main/f/g[3,6]lost main/f[2,6]lost main[1,9]=4", "exit-lost 2")
	// It closes the nearest call of its function and no other.
	f("enter f 1; enter f 2; enter g 3; exit f 4; exit f 9", "f/f/g[3,4]lost f/f[2,4]lost f[1,9]=6", "exit-lost 1")
	// A call that was entered again and again without an exit.
	f("enter main 1; enter f 2; enter f 3; enter f 4; exit main 9", "main/f/f/f[4,9]lost main/f/f[3,9]lost main/f[2,9]lost main[1,9]lost",
		"exit-lost 3")
	// Of the call that is closed only the time without those within is not
	// known: the one around it has its own.
	f("enter main 1; enter f 2; enter g 3; exit g 4; enter g 5; exit f 7; exit main 9",
		"main/f/g[3,4]=1 main/f/g[5,7]lost main/f[2,7]lost main[1,9]=3", "exit-lost 1")
	// The next steps see nothing of it.
	f("enter main 1; enter f 2 | enter g 3 | exit main 5; enter main 6 | enter f 7; exit f 8; exit main 9",
		"|  | main/f/g[3,5]lost main/f[2,5]lost main[1,5]lost | main/f[7,8]=1 main[6,9]=2", "exit-lost 2")
}

func TestExitWithoutEnterIsDropped(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	f("exit main 9", "", "exit-without-enter 1")
	f("enter main 1; exit main 2; exit main 3", "main[1,2]=1", "exit-without-enter 1")
	// The entry was lost.
	f("enter main 1; exit f 5; exit main 9", "main[1,9]=8", "exit-without-enter 1")
	f("enter main 1; enter g 2; exit f 5; exit g 6; exit main 9", "main/g[2,6]=4 main[1,9]=4", "exit-without-enter 1")
	f("exit f 5; exit g 6; enter main 7; exit main 9", "main[7,9]=2", "exit-without-enter 2")
	// On another thread it is open.
	f("@0 enter f 1; @1 enter g 2; exit f 3; exit g 4; @0 exit f 9", "f[1,9]=8; @1 g[2,4]=2", "exit-without-enter 1")
	// Before its entry no call can end.
	f("enter f 5; exit f 3; exit f 9", "f[5,9]=4", "exit-without-enter 1")
	f("enter f 1; enter f 5; exit f 3; exit f 9", "f/f[5,5]lost f[1,3]lost", "exit-without-enter 1, exit-lost 1")
}

func TestThreadRecoversFromLostEvents(t *testing.T) {
	// Each step loses an exit in one round and an entry in the next.
	cfg := config()
	cfg.Window = 3
	var steps, want, kept strings.Builder
	for i := range 100 {
		at := func(n int) int { return 10*i + n }
		fmt.Fprintf(&steps, "enter step %d; enter f %d; enter g %d; exit f %d; exit h %d; enter f %d; exit f %d; exit step %d |",
			at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8))
		fmt.Fprintf(&want, "step/f/g[%d,%d]lost step/f[%d,%d]lost step/f[%d,%d]=1 step[%d,%d]=4 |", at(3), at(4), at(2), at(4), at(6), at(7),
			at(1), at(8))
		kept.WriteString("f g f |")
	}
	got, counted := build(t, cfg, steps.String(), doneCalls, nil)
	compare(t, "100 steps", got, want.String())
	compare(t, "100 steps", counted, "exit-without-enter 100, exit-lost 100")
	got, _ = build(t, cfg, steps.String(), nil, keptCalls)
	compare(t, "100 steps", got, kept.String()+"f g f")
}

func TestTooDeepCallsAreDropped(t *testing.T) {
	f := func(depth int, events, want, counted string) {
		t.Helper()
		cfg := config()
		cfg.MaxDepth = depth
		got, n := build(t, cfg, events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	const events = "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6; exit b 7; exit a 8"
	f(3, events, "a/b/c[3,4]=1 a/b/d[5,6]=1 a/b[2,7]=3 a[1,8]=2", "")
	f(2, events, "a/b[2,7]=5 a[1,8]=2", "stack-too-deep 2")
	f(1, events, "a[1,8]=7", "stack-too-deep 3")
	// Afterwards there is room again.
	f(1, "enter a 1; enter b 2; exit b 3; exit a 4; enter b 5; exit b 6", "a[1,4]=3 b[5,6]=1", "stack-too-deep 1")
	// Their exits end no other call, not even one of the same function.
	const recursion = "enter f 1; enter f 2; enter f 3; exit f 10; exit f 50; exit f 100"
	f(3, recursion, "f/f/f[3,10]=7 f/f[2,50]=41 f[1,100]=51", "")
	f(2, recursion, "f/f[2,50]=48 f[1,100]=51", "stack-too-deep 1")
	f(1, recursion, "f[1,100]=99", "stack-too-deep 2")
	f(0, recursion, "", "stack-too-deep 3")
	f(2, "enter f 1; enter f 2; enter f 3 | exit f 10; enter f 11 | exit f 12 | exit f 50; exit f 100", "|  |  | f/f[2,50]=48 f[1,100]=51",
		"stack-too-deep 2")
	// An exit that fits none of them shows that some were lost: they are
	// forgotten, and do not swallow the exits of others.
	f(1, "enter a 1; enter b 2; enter c 3; exit x 4; exit a 5; exit a 6", "a[1,5]=4", "exit-without-enter 2, stack-too-deep 2")
	f(3, "enter main 1; enter l 2; enter l 3; enter l 4; enter l 5; exit main 6 | enter g 7; exit g 8",
		"main/l/l[3,6]lost main/l[2,6]lost main[1,6]lost | g[7,8]=1", "exit-lost 2, stack-too-deep 2")
	// Other threads have nothing to do with it.
	f(1, "@0 enter a 1; enter b 2; @1 enter c 3; exit c 4; exit c 5; @0 exit b 6; exit a 7", "a[1,7]=6; @1 c[3,4]=1",
		"exit-without-enter 1, stack-too-deep 1")
	// What happens in a call that was dropped happens in the one above it.
	cfg := config()
	cfg.MaxDepth = 1
	const inner = "enter a 1; enter b 2; counter 1=1 3; exit b 4; exit a 5"
	got, _ := build(t, cfg, inner, sides, nil)
	compare(t, inner, got, "a(counter 1=1 3)")
}

// TestDepthBoundKeepsOuterCalls compares builds of the same
// events with and without a bound.
func TestDepthBoundKeepsOuterCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20 {
		var events strings.Builder
		var open []int
		for time := 1; time < 300 || len(open) > 0; time++ {
			if n := len(open); n > 0 && (time >= 300 || rng.IntN(9) < 4) {
				fmt.Fprintf(&events, "exit f%d %d;", open[n-1], time)
				open = open[:n-1]
			} else {
				open = append(open, rng.IntN(3))
				fmt.Fprintf(&events, "enter f%d %d;", open[n], time)
			}
			if rng.IntN(20) == 0 {
				events.WriteString("|")
			}
		}
		all, _ := build(t, config(), events.String(), doneCalls, nil)
		for depth := 1; depth < 12; depth++ {
			var want []string
			entries := 0
			for call := range strings.FieldsSeq(plain(all)) {
				path, _, _ := strings.Cut(call, "[")
				switch n := 1 + strings.Count(path, "/"); {
				case n > depth:
					entries++
					continue
				case n == depth: // those within are not known
					call, _, _ = strings.Cut(call, "=")
				}
				want = append(want, call)
			}
			cfg := config()
			cfg.MaxDepth = depth
			bounded, counted := build(t, cfg, events.String(), doneCalls, nil)
			var got []string
			for call := range strings.FieldsSeq(plain(bounded)) {
				if strings.Count(call, "/") == depth-1 {
					call, _, _ = strings.Cut(call, "=")
				}
				got = append(got, call)
			}
			compare(t, events.String(), strings.Join(got, " "), strings.Join(want, " "))
			wantCounted := ""
			if entries > 0 {
				wantCounted = fmt.Sprintf("stack-too-deep %d", entries)
			}
			compare(t, events.String(), counted, wantCounted)
		}
	}
}

func TestTimeDoesNotRunBackwards(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, doneCalls, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	f("enter main 5; exit main 9 | enter main 3; enter f 8; exit f 12; exit main 20", "main[5,9]=4 | main/f[9,12]=3 main[9,20]=8",
		"time-backwards 2")
	f("enter main 10 | exit main 5", "| main[10,10]=0", "time-backwards 1")
	f("enter main 1; enter f 10 | exit f 3; enter f 7; exit f 11; exit main 12", "| main/f[10,10]=0 main/f[10,11]=1 main[1,12]=10",
		"time-backwards 2")
	// An equal time is not a setback.
	f("enter main 5; exit main 9 | enter main 9; exit main 9", "main[5,9]=4 | main[9,9]=0", "")
	// It stands still until the clock has caught up.
	f("enter main 100; exit main 200 | enter f 10; exit f 20 | enter f 150; exit f 160 | enter f 199; exit f 210 | enter f 210; exit f 215",
		"main[100,200]=100 | f[200,200]=0 | f[200,200]=0 | f[200,210]=10 | f[210,215]=5", "time-backwards 5")
	// Steps without events do not matter.
	f("enter a 1; exit a 10 | | enter b 5; exit b 12", "a[1,10]=9 |  | b[10,12]=2", "time-backwards 1")
	// Each thread has a separate clock.
	f("@0 enter a 1; exit a 100; @1 enter b 1; exit b 2 | @1 enter b 3; exit b 4", "a[1,100]=99; @1 b[1,2]=1 | @1 b[3,4]=1", "")
	// Within a step the times are left as they are.
	f("enter a 1; exit a 10 | enter f 12; exit f 9; exit f 13", "a[1,10]=9 | f[12,13]=1", "exit-without-enter 1")
	if got := tally.TimeBackwards.Severity(); got != tally.Repaired {
		t.Errorf("its severity is %v, want %v", got, tally.Repaired)
	}
	// Messages and counters are moved too, whether or not they belong to a call.
	const all = "enter main 10 | counter 1=1 5; node 1=2 6; send 1/1/1 7; counter 1=2 11; exit main 12"
	got, counted := build(t, config(), all, nodeCounters, nil)
	compare(t, all, got, "() | node 1=2 10(main(counter 1=1 10; send 1/1/1 10; counter 1=2 11))")
	compare(t, all, counted, "time-backwards 3")
}
