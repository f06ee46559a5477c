package callstack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/callstack"
	"github.com/chimbuko/chimbuko/internal/tally"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// script holds events that were given as text: clauses between semicolons,
// steps between bars. Each clause ends with its time:
//
//	enter FUNC 1; exit FUNC 2         a function, by name
//	send 3/5/800 4; recv 3/5/800 4    partner, tag and bytes
//	counter 7=9 5                     number and value
//	id 42 6                           a correlation id
//	node 1=2 7                        a counter that belongs to no call
//
// A clause that begins with @2 is of thread 2, as are those after it in the
// step. As tau does it, rows are counted in each step by table, and threads
// come in order of their numbers, whatever their order in the text.
type script struct {
	names []string
	steps [][]trace.Batch
}

// Numbers of the counters that are no plain ones.
const (
	idCounter   = 1000
	nodeCounter = 2000 // and those above
)

// role is the Config.Role for scripts.
func role(id trace.CounterID) callstack.CounterRole {
	switch {
	case id >= nodeCounter:
		return callstack.Apart
	case id == idCounter:
		return callstack.Correlation
	}
	return callstack.OfCall
}

func config() callstack.Config {
	cfg := callstack.Default()
	cfg.Role = role
	return cfg
}

func parse(tb testing.TB, text string) *script {
	tb.Helper()
	s := new(script)
	for step := range strings.SplitSeq(text, "|") {
		threads := make(map[trace.Thread][]trace.Event)
		rows := make(map[trace.Kind]uint32)
		thread := trace.Thread(0)
		for clause := range strings.SplitSeq(step, ";") {
			words := strings.Fields(clause)
			if len(words) > 0 && strings.HasPrefix(words[0], "@") {
				n, err := strconv.Atoi(words[0][1:])
				if err != nil {
					tb.Fatalf("%q: %v", clause, err)
				}
				thread, words = trace.Thread(n), words[1:]
			}
			if len(words) == 0 {
				continue
			}
			e, ok := s.event(words)
			if !ok {
				tb.Fatalf("%q is no event", clause)
			}
			e.Row = rows[table(e.Kind)]
			rows[table(e.Kind)]++
			threads[thread] = append(threads[thread], e)
		}
		s.steps = append(s.steps, batches(threads))
	}
	return s
}

// table names the table that an event is a row of, by one of its kinds.
func table(k trace.Kind) trace.Kind {
	switch k {
	case trace.Exit:
		return trace.Enter
	case trace.Recv:
		return trace.Send
	}
	return k
}

func batches(threads map[trace.Thread][]trace.Event) (b []trace.Batch) {
	for thread, events := range threads {
		b = append(b, trace.Batch{Thread: thread, Events: events})
	}
	slices.SortFunc(b, func(x, y trace.Batch) int { return int(x.Thread) - int(y.Thread) })
	return b
}

func (s *script) event(words []string) (e trace.Event, ok bool) {
	if len(words) != 3 {
		return e, false
	}
	scan := func(format string, to ...any) bool {
		n, err := fmt.Sscanf(words[1]+" "+words[2], format+" %d", append(to, &e.Time)...)
		return err == nil && n == len(to)+1
	}
	switch words[0] {
	case "enter", "exit":
		e.Kind, _ = trace.ParseKind(words[0])
		name := ""
		ok = scan("%s", &name)
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
		e.ID = uint32(slices.Index(s.names, name))
	case "send", "recv":
		e.Kind, _ = trace.ParseKind(words[0])
		ok = scan("%d/%d/%d", &e.ID, &e.Tag, &e.Value)
	case "counter", "node":
		e.Kind = trace.Count
		ok = scan("%d=%d", &e.ID, &e.Value)
		if words[0] == "node" {
			e.ID += nodeCounter
		}
	case "id":
		e.Kind, e.ID = trace.Count, idCounter
		ok = scan("%d", &e.Value)
	}
	return e, ok
}

// text is the inverse of event, without the time of functions.
func (s *script) text(e trace.Event) string {
	switch {
	case e.Kind == trace.Send || e.Kind == trace.Recv:
		return fmt.Sprintf("%v %d/%d/%d %d", e.Kind, e.Partner(), e.Tag, e.Value, e.Time)
	case e.Kind == trace.Count && e.ID >= nodeCounter:
		return fmt.Sprintf("node %d=%d %d", e.ID-nodeCounter, e.Value, e.Time)
	case e.Kind == trace.Count && e.ID == idCounter:
		return fmt.Sprintf("id %d %d", e.Value, e.Time)
	case e.Kind == trace.Count:
		return fmt.Sprintf("counter %d=%d %d", e.ID, e.Value, e.Time)
	}
	return fmt.Sprintf("%v %s %d", e.Kind, s.names[e.Func()], e.Time)
}

// path is a call's stack, outermost first: main/f.
func (s *script) path(t *callstack.Thread, call int32) string {
	var names []string
	for c := range t.Stack(call) {
		names = append(names, s.names[t.Calls[c].Func])
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// call is a call with its stack, times and exclusive time: main/f[2,5]=3; an
// open one is main/f[2,, and one whose exit was lost main/f[2,5]lost.
func (s *script) call(t *callstack.Thread, call int32) string {
	c := &t.Calls[call]
	switch {
	case c.IsOpen():
		return fmt.Sprintf("%s[%d,", s.path(t, call), c.Entry)
	case c.Lost():
		return fmt.Sprintf("%s[%d,%d]lost", s.path(t, call), c.Entry, c.Exit)
	}
	return fmt.Sprintf("%s[%d,%d]=%d", s.path(t, call), c.Entry, c.Exit, c.Exclusive())
}

// build builds the calls of a script and returns what tell says of each step,
// before or after the step is trimmed, and all that was counted.
func build(tb testing.TB, cfg callstack.Config, text string, tell, after func(*script, *callstack.Builder) string) (told string, counted string) {
	tb.Helper()
	var counts tally.Tally
	s := parse(tb, text)
	b := callstack.NewBuilder(cfg, &counts)
	var steps []string
	for i, step := range s.steps {
		b.Begin(i)
		for _, batch := range step {
			b.Add(batch.Thread, batch.Events)
		}
		if tell != nil {
			steps = append(steps, tell(s, b))
		}
		b.Trim()
		if after != nil {
			steps = append(steps, after(s, b))
		}
	}
	return strings.Join(steps, "|"), totals(&counts)
}

// totals is what was counted: exit-lost 2, outside-any-call 1.
func totals(counts *tally.Tally) string {
	var all []string
	for kind, n := range counts.All() {
		all = append(all, fmt.Sprintf("%s %d", kind.Name(), n))
	}
	return strings.Join(all, ", ")
}

// eachThread joins what is said of threads; that of thread 0 has no mark.
func eachThread(b *callstack.Builder, tell func(*callstack.Thread) []string) string {
	var threads []string
	for _, t := range b.Threads() {
		words := tell(t)
		if len(words) == 0 {
			continue
		}
		if t.ID != 0 {
			words = append([]string{fmt.Sprintf("@%d", t.ID)}, words...)
		}
		threads = append(threads, strings.Join(words, " "))
	}
	return strings.Join(threads, "; ")
}

// done tells the calls that ended in the step, in order of exit.
func done(s *script, b *callstack.Builder) string {
	return eachThread(b, func(t *callstack.Thread) (calls []string) {
		for _, c := range t.Done {
			calls = append(calls, s.call(t, c))
		}
		return calls
	})
}

// held tells all calls that are held, by their own names.
func held(s *script, b *callstack.Builder) string {
	return eachThread(b, func(t *callstack.Thread) (calls []string) {
		for i := range t.Calls {
			calls = append(calls, s.names[t.Calls[i].Func])
		}
		return calls
	})
}

// sides tells the messages and counters of all calls that are held.
func sides(s *script, b *callstack.Builder) string {
	return eachThread(b, func(t *callstack.Thread) (calls []string) {
		for i := range t.Calls {
			var texts []string
			for _, e := range t.SidesOf(nil, int32(i)) {
				texts = append(texts, s.text(e))
			}
			if len(texts) > 0 {
				calls = append(calls, s.names[t.Calls[i].Func]+"("+strings.Join(texts, "; ")+")")
			}
		}
		return calls
	})
}

// joined tells which calls are joined: @0 main/launch = @1 k. Each pair is told
// once, and it must be known at both ends.
func joined(s *script, b *callstack.Builder) string {
	var told []string
	pairs := make(map[string]int)
	for _, t := range b.Threads() {
		for call := range t.Calls {
			for other, partner := range t.Partners(int32(call)) {
				x := fmt.Sprintf("@%d %s", t.ID, s.path(t, int32(call)))
				y := fmt.Sprintf("@%d %s", other.ID, s.path(other, partner))
				pairs[min(x, y)+" = "+max(x, y)]++
			}
		}
	}
	for pair, n := range pairs {
		if n%2 != 0 {
			pair += " ONE WAY"
		}
		told = append(told, pair)
	}
	slices.Sort(told)
	return strings.Join(told, ", ")
}

func waiting(_ *script, b *callstack.Builder) string { return strconv.Itoa(b.Waiting()) }

// compare fails a test whose events did not lead to what was wanted. Blanks do
// not matter.
func compare(t *testing.T, events, got, want string) {
	t.Helper()
	got, want = plain(got), plain(want)
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", events, got, want)
	}
}

// plain has one blank between words and on both sides of a bar.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "|", " | ")), " ")
}

func TestACallHasTheTimesOfItsEventsAndItsChildrenInside(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, done, nil)
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
	f("enter main 1; enter f 2; exit f 9223372036854775806; exit main 9223372036854775807", "main/f[2,9223372036854775806]=9223372036854775804 main[1,9223372036854775807]=2")
}

func TestACallThatIsOpenWhenItsStepEndsGoesOnInLaterSteps(t *testing.T) {
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, done, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
	}
	f("enter main 1 | exit main 9", "| main[1,9]=8")
	f("enter main 1; enter f 2 | exit f 5; exit main 9", "| main/f[2,5]=3 main[1,9]=5")
	f("enter main 1 | enter f 2; exit f 5 | | enter f 6 | exit f 8; exit main 9", "| main/f[2,5]=3 |  |  | main/f[6,8]=2 main[1,9]=3")
	f("enter f 1; enter f 2 | exit f 3; enter f 4 | exit f 5; exit f 9", "| f/f[2,3]=1 | f/f[4,5]=1 f[1,9]=6")
	f("@0 enter main 1; @1 enter w 2 | @1 enter f 3 | @0 exit main 4 | @1 exit f 6; exit w 9", "|  | main[1,4]=3 | @1 w/f[3,6]=3 w[2,9]=4")
}

func TestAnOpenCallHasNoExit(t *testing.T) {
	open := func(s *script, b *callstack.Builder) string {
		var calls []string
		for i := range b.Threads()[0].Calls {
			c := &b.Threads()[0].Calls[i]
			if c.IsOpen() != (c.Exit == callstack.Open) || c.Label != callstack.Unjudged {
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

func TestAnEventIDIsRankStepAndRowOfTheEntry(t *testing.T) {
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
	// Other tables have rows of their own.
	f("enter main 1; counter 1=1 2; send 1/1/1 2; enter f 2; exit f 3; exit main 9", "f=7:0:1<7:0:0(0) main=7:0:0<root(1)")
	// The threads of a step share its table.
	f("@0 enter main 1; @1 enter w 1; exit w 2; @0 enter f 3; exit f 4", "f=7:0:3<7:0:0(0); @1 w=7:0:1<root(0)")
	// Both are of the step in which they began.
	f("enter main 1 | enter f 2 | exit f 4; enter g 5; exit g 6 | exit main 9",
		"| | f=7:1:0<7:0:0(0) g=7:2:1<7:0:0(0) | main=7:0:0<root(2)")
}

// TestMessagesAndCountersBelongToTheInnermostCall has events in the order in
// which tau gives them: those at the time of an entry come after it, those at
// the time of an exit before it.
func TestMessagesAndCountersBelongToTheInnermostCall(t *testing.T) {
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
	// Both ends belong to it, and calls at the same time are told apart.
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
	// A lost exit: they belong to what was open as far as anyone knew.
	f("enter main 1; enter f 2; counter 1=1 3; exit main 9; counter 1=2 10", "f(counter 1=1 3)", "exit-lost 1, outside-any-call 1")
}

func TestTheStateOfTheNodeBelongsToNoCall(t *testing.T) {
	apart := func(s *script, b *callstack.Builder) string {
		var texts []string
		for _, e := range b.Apart() {
			texts = append(texts, s.text(e))
		}
		return strings.Join(texts, " ") + "(" + sides(s, b) + ")"
	}
	f := func(events, want string) {
		t.Helper()
		got, counted := build(t, config(), events, apart, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
	}
	f("enter main 1; node 1=5 2; counter 1=6 3; exit main 9", "node 1=5 2(main(counter 1=6 3))")
	f("node 1=5 2; node 2=6 2 | | node 1=7 3", "node 1=5 2 node 2=6 2() | () | node 1=7 3()")
	f("@4 node 1=5 1; @0 node 1=7 2", "node 1=7 2 node 1=5 1()") // thread by thread
}

func TestWithoutRolesAllCountersBelongToCalls(t *testing.T) {
	const events = "@0 enter main 1; id 5 2; node 1=5 2; exit main 9; @1 enter k 1; id 5 2; exit k 3"
	got, counted := build(t, callstack.Default(), events, func(s *script, b *callstack.Builder) string {
		return fmt.Sprint(sides(s, b), " apart:", len(b.Apart()), " joined:", joined(s, b))
	}, nil)
	compare(t, events, got, "main(id 5 2; node 1=5 2); @1 k(id 5 2) apart:0 joined:")
	compare(t, events, counted, "")
}

func TestAnExitThatWasLostIsRepairedWithTheNextThatFits(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, done, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	f("enter main 1; enter f 2; exit main 9", "main/f[2,9]lost main[1,9]=1", "exit-lost 1")
	f("enter main 1; enter f 2; enter g 3; enter h 4; exit f 6; exit main 9", "main/f/g/h[4,6]lost main/f/g[3,6]lost main/f[2,6]=1 main[1,9]=4", "exit-lost 2")
	// It closes the nearest call of its function and no other.
	f("enter f 1; enter f 2; enter g 3; exit f 4; exit f 9", "f/f/g[3,4]lost f/f[2,4]=1 f[1,9]=6", "exit-lost 1")
	// A call that was entered again and again without an exit.
	f("enter main 1; enter f 2; enter f 3; enter f 4; exit main 9", "main/f/f/f[4,9]lost main/f/f[3,9]lost main/f[2,9]lost main[1,9]=1", "exit-lost 3")
	// The next steps see nothing of it.
	f("enter main 1; enter f 2 | enter g 3 | exit main 5; enter main 6 | enter f 7; exit f 8; exit main 9",
		"|  | main/f/g[3,5]lost main/f[2,5]lost main[1,5]=1 | main/f[7,8]=1 main[6,9]=2", "exit-lost 2")
}

func TestAnExitThatFitsNoOpenCallIsDropped(t *testing.T) {
	f := func(events, want, counted string) {
		t.Helper()
		got, n := build(t, config(), events, done, nil)
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
	f("enter f 1; enter f 5; exit f 3; exit f 9", "f/f[5,5]lost f[1,3]=2", "exit-without-enter 1, exit-lost 1")
}

func TestLostEventsDoNotPoisonAThread(t *testing.T) {
	// Each step loses an exit in one round and an entry in the next.
	cfg := config()
	cfg.Window = 3
	step := "enter step 1; enter f 2; enter g 3; exit f 4; exit h 5; enter f 6; exit f 7; exit step 8 |"
	want := "step/f/g[3,4]lost step/f[2,4]=1 step/f[6,7]=1 step[1,8]=4"
	got, counted := build(t, cfg, strings.Repeat(step, 100), done, nil)
	compare(t, "100 × "+step, got, strings.Repeat(want+" | ", 99)+want+" |")
	compare(t, "100 × "+step, counted, "exit-without-enter 100, exit-lost 100")
	got, _ = build(t, cfg, strings.Repeat(step, 2), nil, held)
	compare(t, step, got, "f g f | f g f | f g f")
}

func TestCallsDeeperThanTheBoundAreDropped(t *testing.T) {
	f := func(depth int, events, want, counted string) {
		t.Helper()
		cfg := config()
		cfg.MaxDepth = depth
		got, n := build(t, cfg, events, done, nil)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	const events = "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6; exit b 7; exit a 8"
	f(3, events, "a/b/c[3,4]=1 a/b/d[5,6]=1 a/b[2,7]=3 a[1,8]=2", "")
	f(2, events, "a/b[2,7]=5 a[1,8]=2", "exit-without-enter 2, stack-too-deep 2")
	f(1, events, "a[1,8]=7", "exit-without-enter 3, stack-too-deep 3")
	// Afterwards there is room again.
	f(1, "enter a 1; enter b 2; exit b 3; exit a 4; enter b 5; exit b 6", "a[1,4]=3 b[5,6]=1", "exit-without-enter 1, stack-too-deep 1")
	// What happens in a call that was dropped happens in the one above it.
	cfg := config()
	cfg.MaxDepth = 1
	const inner = "enter a 1; enter b 2; counter 1=1 3; exit b 4; exit a 5"
	got, _ := build(t, cfg, inner, sides, nil)
	compare(t, inner, got, "a(counter 1=1 3)")
}

func TestAKernelIsJoinedWithItsLaunch(t *testing.T) {
	f := func(events, want string, left string) {
		t.Helper()
		got, counted := build(t, config(), events, joined, nil)
		compare(t, events, got, want)
		compare(t, events, counted, "")
		told, _ := build(t, config(), events, nil, waiting)
		compare(t, events, told[strings.LastIndex(told, "|")+1:], left)
	}
	f("@0 enter main 1; enter launch 2; id 42 3; exit launch 4; @1 enter k 5; id 42 5; exit k 6", "@0 main/launch = @1 k", "0")
	// The kernel's thread comes before the launch's: the original aborts.
	f("@5 enter main 1; enter launch 2; id 42 3; exit launch 4; @1 enter k 5; id 42 5; exit k 6", "@1 k = @5 main/launch", "0")
	// The kernel ends before the launch does.
	f("@0 enter main 1; enter launch 2; id 42 3; @1 enter k 5; id 42 5; exit k 6", "@0 main/launch = @1 k", "0")
	f("@5 enter launch 2; id 42 3; @1 enter k 5; id 42 5; exit k 6 | @5 exit launch 9 | ", "@1 k = @5 launch | @1 k = @5 launch |", "0")
	// Several kernels of one launch, of several threads.
	f("@0 enter launch 1; id 1 2; id 2 2; id 3 2; exit launch 3; @1 enter k 4; id 1 4; exit k 5; enter l 6; id 3 6; exit l 7; @2 enter m 4; id 2 5; exit m 6",
		"@0 launch = @1 k, @0 launch = @1 l, @0 launch = @2 m", "0")
	// Several launches, whose kernels come in another order.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; @1 enter k 5; id 2 5; exit k 6; enter l 7; id 1 7; exit l 8",
		"@0 a = @1 l, @0 b = @1 k", "0")
	// A kernel that two launches lead to.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; @1 enter k 5; id 1 5; id 2 5; exit k 6", "@0 a = @1 k, @0 b = @1 k", "0")
	// Each id belongs to the innermost call.
	f("@0 enter main 1; id 1 1; enter a 2; id 2 2; exit a 3; @1 enter k 4; id 1 4; exit k 5; enter l 6; id 2 6; exit l 7", "@0 main = @1 k, @0 main/a = @1 l", "0")
	// Two calls of one thread are no pair; the later one waits on.
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 1 3; exit b 4", "", "1")
	f("@0 enter a 1; id 1 1; exit a 2; enter b 3; id 1 3; exit b 4; @1 enter k 5; id 1 5; exit k 6", "@0 b = @1 k", "0")
	// A pair is complete: a third call with the same id waits anew.
	f("@0 enter a 1; id 1 1; exit a 2; @1 enter k 3; id 1 3; exit k 4; enter l 5; id 1 5; exit l 6", "@0 a = @1 k", "1")
	// Without a partner, or outside of any call.
	f("@0 enter a 1; id 1 1; exit a 2; @1 enter k 3; id 2 3; exit k 4", "", "2")
}

func TestALaunchWaitsForItsKernelWithItsWholeStack(t *testing.T) {
	f := func(events, wantJoined, wantHeld string) {
		t.Helper()
		cfg := config()
		cfg.Window = 0
		got, counted := build(t, cfg, events, joined, nil)
		compare(t, events, got, wantJoined)
		compare(t, events, counted, "")
		got, _ = build(t, cfg, events, nil, held)
		compare(t, events, got, wantHeld)
	}
	launch := "@%d enter main 1; enter x 2; exit x 3; enter f 4; enter y 5; exit y 6; enter launch 7; id 42 8; exit launch 9; exit f 10; exit main 11"
	kernel := "@%d enter k 20; id 42 20; exit k 21 |"
	// The launch is ten steps older than the kernel, and all of it has ended.
	idle := strings.Repeat("|", 10)
	f(fmt.Sprintf(launch+idle+kernel, 0, 1), idle+" @0 main/f/launch = @1 k |", strings.Repeat("main f launch | ", 10)+" |")
	f(fmt.Sprintf(launch+idle+kernel, 9, 1), idle+" @1 k = @9 main/f/launch |", strings.Repeat("@9 main f launch | ", 10)+" |")
	// The kernel waits for a launch that comes later.
	f(fmt.Sprintf(kernel, 1)+idle+fmt.Sprintf(launch, 0)+"|", "| "+idle+" @0 main/f/launch = @1 k |", "@1 k |"+strings.Repeat(" @1 k |", 10)+" |")
	// While one of them is open both stay, and the join with them.
	f("@0 enter main 1; enter launch 2; id 1 3; exit launch 4; exit main 5 | @1 enter k 6; id 1 6 | | @1 exit k 7 |",
		"| @0 main/launch = @1 k | @0 main/launch = @1 k | @0 main/launch = @1 k |",
		"main launch | main launch; @1 k | main launch; @1 k |  |")
	// Other threads and calls make no difference.
	noise := "@0 enter x 1; exit x 2; @2 enter z 1; exit z 2 |"
	f(fmt.Sprintf(launch, 0)+"|"+noise+noise+fmt.Sprintf(kernel, 1), "|  |  | @0 main/f/launch = @1 k |", "main f launch | main f launch | main f launch |  |")
}

// TestACommonParentWaitsForAllItsLaunches is the original's test of
// correlation matching: a call with two ids, its parent with one.
func TestACommonParentWaitsForAllItsLaunches(t *testing.T) {
	cfg := config()
	cfg.Window = 0
	const events = "@0 enter grand 1; enter parent 2; id 3 2; enter cpu 3; id 1 4; id 2 4; exit cpu 5; exit parent 6; exit grand 7 |" +
		"@1 enter k 10; id 1 10; exit k 11 | @1 enter l 12; id 2 12; exit l 13 | @1 enter m 14; id 3 14; exit m 15"
	got, _ := build(t, cfg, events, nil, func(s *script, b *callstack.Builder) string { return waiting(s, b) + ": " + held(s, b) })
	compare(t, events, got, "3: grand parent cpu | 2: grand parent cpu | 1: grand parent | 0:")
}

func TestFunctionsMayBeExcludedFromJoining(t *testing.T) {
	const events = "@0 enter launch 1; id 42 2; exit launch 3; @1 enter k 4; id 42 4; exit k 5"
	f := func(left string, pair string, uncoupled ...string) {
		t.Helper()
		names := parse(t, events).names
		cfg := config()
		cfg.Uncoupled = func(id trace.FuncID) bool { return slices.Contains(uncoupled, names[id]) }
		got, counted := build(t, cfg, events, func(s *script, b *callstack.Builder) string {
			return waiting(s, b) + " " + joined(s, b) + " " + sides(s, b)
		}, nil)
		compare(t, fmt.Sprint(uncoupled), got, left+" "+pair+" launch(id 42 2); @1 k(id 42 4)")
		compare(t, fmt.Sprint(uncoupled), counted, "")
	}
	f("0", "@0 launch = @1 k")
	f("1", "", "launch")
	f("1", "", "k")
	f("0", "", "launch", "k")
}

func TestTheNumberOfIDsThatWaitIsBounded(t *testing.T) {
	f := func(events, want, left, counted string) {
		t.Helper()
		cfg := config()
		cfg.MaxPinned = 2
		got, n := build(t, cfg, events, func(s *script, b *callstack.Builder) string { return waiting(s, b) + " " + joined(s, b) }, nil)
		compare(t, events, got, left+" "+want)
		compare(t, events, n, counted)
	}
	launches := "@0 enter a 1; id 1 1; exit a 2; enter b 3; id 2 3; exit b 4; "
	f(launches, "", "2", "")
	f(launches+"enter c 5; id 3 5; exit c 6", "", "2", "correlation-dropped 1")
	// What waits is still joined, and makes room.
	f(launches+"enter c 5; id 3 5; exit c 6; @1 enter k 7; id 2 7; exit k 8; enter l 9; id 4 9; exit l 10", "@0 b = @1 k", "2", "correlation-dropped 1")
	// The same id again takes no room.
	f(launches+"enter c 5; id 2 5; exit c 6; @1 enter k 7; id 2 7; exit k 8", "@0 c = @1 k", "1", "")
}

func TestTheEndOfAStepKeepsTheWindowAndWhatIsOpenOrWaits(t *testing.T) {
	f := func(window int, events, want string) {
		t.Helper()
		cfg := config()
		cfg.Window = window
		got, counted := build(t, cfg, events, nil, held)
		compare(t, fmt.Sprintf("window %d: %s", window, events), got, want)
		compare(t, events, counted, "")
	}
	const seven = "enter a 1; exit a 2; enter b 3; exit b 4; enter c 5; exit c 6; enter d 7; exit d 8; enter e 9; exit e 10; enter f 11; exit f 12; enter g 13; exit g 14"
	f(0, seven, "")
	f(1, seven, "g")
	f(4, seven, "d e f g")
	f(7, seven, "a b c d e f g")
	f(100, seven, "a b c d e f g")
	// Later steps go on with the window.
	f(4, seven+"| | enter h 20; exit h 21", "d e f g | d e f g | e f g h")
	// In order of entry, not of exit.
	f(2, "enter a 1; enter b 2; exit b 3; enter c 4; exit c 5; exit a 6", "b c")
	// Open calls stay, whatever lies between them and the window.
	f(1, "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6 | exit b 7 | exit a 8", "a b d | a d | d")
	f(0, "enter a 1; enter b 2; enter c 3; exit c 4; enter d 5; exit d 6 | exit b 7 | exit a 8", "a b | a |")
	// Those that wait stay with all above them.
	f(1, "enter a 1; enter x 1; exit x 1; enter b 2; id 1 2; exit b 3; exit a 4; enter c 5; exit c 6; enter d 7; exit d 8", "a b d")
	// Each thread has a window of its own.
	f(1, "@0 enter a 1; exit a 2; enter b 3; exit b 4; @1 enter c 1; exit c 2; @2 enter d 1; enter e 2 | @1 enter f 3; exit f 4", "b; @1 c; @2 d e | b; @1 f; @2 d e")
}

func TestMessagesAndCountersOfLongCallsAreBounded(t *testing.T) {
	f := func(most int, events, want, counted string) {
		t.Helper()
		cfg := config()
		cfg.Window, cfg.MaxSides = 0, most
		got, n := build(t, cfg, events, nil, sides)
		compare(t, events, got, want)
		compare(t, events, n, counted)
	}
	const events = "enter main 1; counter 1=1 1; counter 1=2 2; enter f 3; counter 1=3 3; exit f 4; counter 1=4 5 | counter 1=5 6 | exit main 7"
	f(4, events, "main(counter 1=1 1; counter 1=2 2; counter 1=4 5) | main(counter 1=1 1; counter 1=2 2; counter 1=4 5; counter 1=5 6) |", "")
	// The oldest go first; those of calls that are not kept take no room.
	f(3, events, "main(counter 1=1 1; counter 1=2 2; counter 1=4 5) | main(counter 1=2 2; counter 1=4 5; counter 1=5 6) |", "sides-forgotten 1")
	f(1, events, "main(counter 1=4 5) | main(counter 1=5 6) |", "sides-forgotten 3")
	f(0, events, "|  |", "sides-forgotten 4")
}

// TestManyStepsLeaveTheRightCallsInTheRightPlaces holds the builder against a
// model that forgets nothing and finds calls by their ids.
func TestManyStepsLeaveTheRightCallsInTheRightPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 2000)
	for range 40 {
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
func addShifted(b *callstack.Builder, step int, batches []trace.Batch, later trace.Micros) {
	b.Begin(step)
	for _, batch := range batches {
		for i := range batch.Events {
			batch.Events[i].Time += later
		}
		b.Add(batch.Thread, batch.Events)
	}
}

func TestMemoryStaysBoundedOverManySteps(t *testing.T) {
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
	if b.Waiting() != 0 || counts.Count(tally.ExitLost) != 2*steps {
		t.Errorf("%d ids wait, counted %s; want none, and %d lost exits", b.Waiting(), totals(&counts), 2*steps)
	}
	if n := counts.Count(tally.SidesForgotten); n < (steps-10)*counters {
		t.Errorf("%d counters were forgotten, want nearly all of %d", n, steps*counters)
	}
}

func TestBuildingAllocatesNothingForAnEventOrACall(t *testing.T) {
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
	f("messages and counters", "enter main 1", strings.Repeat("enter f 2; counter 1=1 3; send 1/1/1 3; node 1=1 3; exit f 4; counter 1=1 5;", 100))
	f("lost exits", "enter main 1", strings.Repeat("enter f 2; enter g 3; exit h 4; exit f 5; ", 100))
	f("kernels", "@0 enter main 1", kernels(100))
	f("kernels of the step before", "@0 enter main 1; enter launch 2; id 7 2; exit launch 3; enter launch 2; id 8 2; exit launch 3",
		"@1 enter k 5; id 7 5; exit k 6; enter k 5; id 8 5; exit k 6; @0 "+strings.Repeat("enter f 2; exit f 3;", 100)+"enter launch 7; id 7 7; exit launch 8; enter launch 9; id 8 9; exit launch 10")
}
