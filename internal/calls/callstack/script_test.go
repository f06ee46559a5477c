package callstack_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
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
// step. As in package tau, rows are counted by step and table, and threads are in order
// of their numbers, independent of their order in the text.
type script struct {
	names []string
	steps [][]trace.Batch
}

// Numbers of the special counters.
const (
	idCounter   = 1000
	nodeCounter = 2000 // and those above
)

// role is the Config.Role for scripts.
func role(id trace.CounterID) callstack.CounterRole {
	switch {
	case id >= nodeCounter:
		return callstack.NodeState
	case id == idCounter:
		return callstack.Correlation
	}
	return callstack.OfCall
}

func config() callstack.Config {
	cfg := callstack.Default(trace.Microsecond)
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

// build builds the calls of a script and returns the results of describe for each step,
// before or after it is trimmed, and all counts.
func build(tb testing.TB, cfg callstack.Config, text string, describe, after func(*script, *callstack.Builder) string) (output string,
	counted string,
) {
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
		if describe != nil {
			steps = append(steps, describe(s, b))
		}
		b.Trim()
		if after != nil {
			steps = append(steps, after(s, b))
		}
	}
	return strings.Join(steps, "|"), totals(&counts)
}

// totals returns the counts: exit-lost 2, outside-any-call 1.
func totals(counts *tally.Tally) string {
	var all []string
	for kind, n := range counts.All() {
		all = append(all, fmt.Sprintf("%s %d", kind.Name(), n))
	}
	return strings.Join(all, ", ")
}

// eachThread joins the texts of threads; thread 0 has no mark.
func eachThread(b *callstack.Builder, describe func(*callstack.Thread) []string) string {
	var threads []string
	for _, t := range b.Threads() {
		words := describe(t)
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

// doneCalls returns the calls that ended in the step, in order of exit.
func doneCalls(s *script, b *callstack.Builder) string {
	return eachThread(b, func(t *callstack.Thread) (calls []string) {
		for _, c := range t.Done {
			calls = append(calls, s.call(t, c))
		}
		return calls
	})
}

// keptCalls returns the names of all kept calls.
func keptCalls(s *script, b *callstack.Builder) string {
	return eachThread(b, func(t *callstack.Thread) (calls []string) {
		for i := range t.Calls {
			calls = append(calls, s.names[t.Calls[i].Func])
		}
		return calls
	})
}

// sides returns the messages and counters of all calls that are held.
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

// nodeCounters returns the counters that belong to no call, and all sides in parentheses.
func nodeCounters(s *script, b *callstack.Builder) string {
	var texts []string
	for _, e := range b.NodeEvents() {
		texts = append(texts, s.text(e))
	}
	return strings.Join(texts, " ") + "(" + sides(s, b) + ")"
}

// joinedCalls returns the joined calls: @0 main/launch = @1 k. Each pair appears once, and
// both ends must have the link.
func joinedCalls(s *script, b *callstack.Builder) string {
	var output []string
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
		output = append(output, pair)
	}
	slices.Sort(output)
	return strings.Join(output, ", ")
}

func unmatchedIDs(_ *script, b *callstack.Builder) string { return strconv.Itoa(b.Unmatched()) }

// compare fails the test if got and want differ in more than blanks.
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
