package simulate_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// parse reads a scenario of a test's own.
func parse(tb testing.TB, text string) *scenario.Scenario {
	tb.Helper()
	s, err := scenario.Parse("test", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// builtin returns a scenario that is built in, with so many ranks of the first
// program, or a few more if it needs them, and at most so many steps. The times
// of its troubles move in proportion.
func builtin(tb testing.TB, name string, ranks, steps int) *scenario.Scenario {
	tb.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		tb.Fatal(err)
	}
	s := parse(tb, string(text))
	for of := s.Programs[0].Ranks; ranks < of && s.Resize(ranks) != nil; ranks++ {
		s = parse(tb, string(text))
	}
	if s.Steps > steps {
		if err := s.Stretch(steps); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// each runs a subtest for every scenario that is built in, or with -short every third, made small: fewer
// ranks, steps and iterations, and the times of its troubles in proportion.
func each(t *testing.T, f func(t *testing.T, s *scenario.Scenario)) {
	for _, name := range tracetest.Sample(scenario.Names(), 3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := builtin(t, name, 5, 6)
			few := min(s.Iterations, 6)
			for i := range s.Troubles {
				s.Troubles[i].FromSeconds *= float64(few) / float64(s.Iterations)
				s.Troubles[i].ToSeconds *= float64(few) / float64(s.Iterations)
			}
			s.Iterations = few
			f(t, s)
		})
	}
}

// without returns the scenario without its troubles.
func without(s *scenario.Scenario) *scenario.Scenario {
	quiet := *s
	quiet.Troubles = nil
	return &quiet
}

// call is one execution of a function.
type call struct {
	id          string
	function    string
	thread      trace.Thread
	step        int
	entry, exit trace.Ticks
	own         trace.Ticks // without the calls
	inside      int         // number of calls in it, nested ones included
	sides       []trace.Event
}

func (c *call) took() trace.Ticks { return c.exit - c.entry }

// traced is the trace of a rank.
type traced struct {
	program     trace.Program
	programName string
	rank        trace.Rank
	host        string
	names       *trace.Names
	steps       []trace.Step
	ends        []trace.Ticks
	truth       []truth.Call
	calls       []*call // thread by thread, in order of entry
}

// record runs a scenario and keeps all of it.
func record(tb testing.TB, s *scenario.Scenario) []*traced {
	tb.Helper()
	run := simulate.New(s)
	var all []*traced
	for _, of := range run.Streams() {
		all = append(all, newTraced(of))
	}
	for range s.Steps {
		for i, of := range run.Streams() {
			if err := all[i].take(of, tb); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for i, of := range run.Streams() {
		if _, err := of.Next(tb.Context()); !errors.Is(err, io.EOF) {
			tb.Fatalf("rank %d: after the last step: %v, want io.EOF", of.Rank(), err)
		}
		all[i].build(tb)
	}
	return all
}

func newTraced(of *simulate.Stream) *traced {
	return &traced{program: of.Program(), programName: of.ProgramName(), rank: of.Rank(), host: of.Host(), names: of.Names()}
}

// take keeps the next step.
func (r *traced) take(of *simulate.Stream, tb testing.TB) error {
	step, err := of.Next(tb.Context())
	if err != nil {
		return err
	}
	r.steps = append(r.steps, clone(step))
	r.ends = append(r.ends, of.End())
	r.truth = append(r.truth, of.Truth()...)
	return nil
}

// same reports whether two ranks left the same behind.
func (r *traced) same(as *traced) bool {
	return r.program == as.program && r.rank == as.rank && r.host == as.host && slices.Equal(r.ends, as.ends) &&
		slices.EqualFunc(r.steps, as.steps, func(a, b trace.Step) bool { return sameStep(&a, &b) }) && reflect.DeepEqual(r.truth, as.truth)
}

// clone returns a step that stays valid.
func clone(s *trace.Step) trace.Step {
	c := *s
	c.Metadata = slices.Clone(s.Metadata)
	batches := func(list []trace.Batch) []trace.Batch {
		list = slices.Clone(list)
		for i := range list {
			list[i].Events = slices.Clone(list[i].Events)
		}
		return list
	}
	c.Batches, c.Readings = batches(s.Batches), batches(s.Readings)
	return c
}

// build finds the calls. It does so by itself, to know whether others do it
// right.
func (r *traced) build(tb testing.TB) {
	tb.Helper()
	stacks := make(map[trace.Thread][]*call)
	calls := make(map[trace.Thread][]*call)
	for i := range r.steps {
		for _, b := range r.steps[i].Batches {
			stack := stacks[b.Thread]
			for _, e := range b.Events {
				n := len(stack)
				switch e.Kind {
				case trace.Enter:
					c := &call{
						id:       trace.EventID{Rank: r.rank, Step: r.steps[i].Index, Row: e.Row}.String(),
						function: r.function(e.Func()), thread: b.Thread, step: r.steps[i].Index, entry: e.Time,
					}
					stack = append(stack, c)
					calls[b.Thread] = append(calls[b.Thread], c)
				case trace.Exit:
					if n == 0 || stack[n-1].function != r.function(e.Func()) || e.Time < stack[n-1].entry {
						tb.Fatalf("rank %d step %d: the exit of %s at %d fits nowhere", r.rank, i, r.function(e.Func()), e.Time)
					}
					c := stack[n-1]
					c.exit = e.Time
					c.own += c.took()
					if stack = stack[:n-1]; n > 1 {
						stack[n-2].own -= c.took()
						stack[n-2].inside += 1 + c.inside
					}
				default:
					if n > 0 {
						stack[n-1].sides = append(stack[n-1].sides, e)
					}
				}
			}
			stacks[b.Thread] = stack
		}
	}
	for _, thread := range slices.Sorted(maps.Keys(calls)) {
		r.calls = append(r.calls, calls[thread]...)
		if open := stacks[thread]; len(open) > 0 {
			tb.Fatalf("rank %d thread %d: %s does not end", r.rank, thread, open[len(open)-1].function)
		}
	}
}

func (r *traced) function(id trace.FuncID) string {
	name, ok := r.names.Func(r.rank, id)
	if !ok {
		return fmt.Sprintf("function %d", id)
	}
	return name
}

func (r *traced) counter(id trace.CounterID) string {
	name, ok := r.names.Counter(r.rank, id)
	if !ok {
		return fmt.Sprintf("counter %d", id)
	}
	return name
}

// of returns the calls of a function.
func (r *traced) of(function string) (calls []*call) {
	for _, c := range r.calls {
		if c.function == function {
			calls = append(calls, c)
		}
	}
	return calls
}

// events yields all events of a kind and the thread they are on.
func (r *traced) events(kinds ...trace.Kind) func(yield func(trace.Thread, *trace.Event) bool) {
	return func(yield func(trace.Thread, *trace.Event) bool) {
		for i := range r.steps {
			for _, b := range r.steps[i].Batches {
				for j := range b.Events {
					if e := &b.Events[j]; slices.Contains(kinds, e.Kind) && !yield(b.Thread, e) {
						return
					}
				}
			}
		}
	}
}

// readings returns the values of a counter.
func (r *traced) readings(name string) (events []trace.Event) {
	for _, e := range r.events(trace.Count) {
		if r.counter(e.Counter()) == name {
			events = append(events, *e)
		}
	}
	return events
}

// start is when the programs of a scenario begin.
func start(s *scenario.Scenario) trace.Ticks { return trace.Ticks(s.Start.UnixMicro()) }
