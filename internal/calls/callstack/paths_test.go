package callstack_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// pathsOf returns the counts of a builder by call path, with functions by number: 0/3/*
// are the paths that were folded below 0/3.
func pathsOf(b *callstack.Builder, name func(uint32) string) map[string]callpath.Sums {
	list := b.Paths().Append(nil, nil)
	texts, all := make([]string, len(list)), make(map[string]callpath.Sums)
	for i, e := range list {
		texts[i] = "*"
		if e.Func != callpath.Other {
			texts[i] = name(e.Func)
		}
		if e.Parent >= 0 {
			texts[i] = texts[e.Parent] + "/" + texts[i]
		}
		if e.Calls > 0 {
			all[texts[i]] = e.Sums
		}
	}
	return all
}

func number(fn uint32) string { return fmt.Sprint(fn) }

func comparePaths(t *testing.T, what string, got, want map[string]callpath.Sums) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for _, path := range slices.Compact(slices.Sorted(func(yield func(string) bool) {
		maps.Keys(got)(yield)
		maps.Keys(want)(yield)
	})) {
		if got[path] != want[path] {
			t.Errorf("%s: %s: got %v, want %v", what, path, got[path], want[path])
		}
	}
}

// path returns the call path of a call, without deep recursion.
func (c *modelCall) path() []string {
	if c == nil {
		return nil
	}
	return extend(c.parent.path(), number(uint32(c.fn)))
}

// extend adds a function to a path, or returns to its last call in a deep recursion.
func extend(path []string, fn string) []string {
	times, last := 0, 0
	for i := range path {
		if path[i] == fn {
			times, last = times+1, i
		}
	}
	if times == callpath.MaxRecursion {
		return path[:last+1]
	}
	return append(path, fn)
}

// level returns the depth at which a function has reached MaxRecursion, or else that of the path.
func level(path []string) int {
	times := make(map[string]int)
	for i, fn := range path {
		if times[fn]++; times[fn] == callpath.MaxRecursion {
			return i + 1
		}
	}
	return len(path)
}

// comparePaths compares the counts by call path with their definition: all paths ever
// begun are distinguished down to the greatest depth that satisfies the limit.
func (m *model) comparePaths(t *testing.T, b *callstack.Builder) {
	t.Helper()
	begun := make(map[string]int) // depth
	for _, th := range m.threads {
		for _, c := range th.calls {
			begun[strings.Join(c.path(), "/")] = level(c.path())
		}
	}
	depth, paths := 0, 0
	for ; depth < callpath.MaxDepth; depth++ {
		for _, d := range begun {
			if d == depth+1 {
				paths++
			}
		}
		if paths > m.cfg.MaxPaths {
			break
		}
	}
	want := make(map[string]callpath.Sums)
	for _, th := range m.threads {
		for _, c := range th.calls {
			if c.open || c.lost {
				continue
			}
			path := c.path()
			if level(path) > depth {
				path = append(slices.Clone(path[:depth]), "*")
			}
			s := want[strings.Join(path, "/")]
			want[strings.Join(path, "/")] = callpath.Sums{Calls: s.Calls + 1, Exclusive: s.Exclusive + uint64(max(c.facts().exclusive, 0))}
		}
	}
	comparePaths(t, fmt.Sprintf("at most %d paths", m.cfg.MaxPaths), pathsOf(b, number), want)
	for _, th := range b.Threads() {
		for i := range th.Calls {
			compareNode(t, b, th, int32(i), depth)
		}
	}
}

// compareNode compares the path of a call with its parents, if these were all kept.
func compareNode(t *testing.T, b *callstack.Builder, th *callstack.Thread, call int32, depth int) {
	t.Helper()
	var stack, want []string
	for i := range th.Stack(call) {
		c := &th.Calls[i]
		if stack = append(stack, number(uint32(c.Func))); c.Parent < 0 && c.ParentStep >= 0 {
			return
		}
	}
	for _, fn := range slices.Backward(stack) {
		want = extend(want, fn)
	}
	if level(want) > depth {
		want = append(want[:depth], "*")
	}
	var got []string
	for n := th.Calls[call].Path(); n != callpath.Root; {
		parent, fn := b.Paths().Last(n)
		if n = parent; fn == callpath.Other {
			got = append(got, "*")
		} else {
			got = append(got, number(fn))
		}
	}
	if slices.Reverse(got); !slices.Equal(got, want) {
		t.Errorf("a call has the path %v, want %v", got, want)
	}
}

func TestEndedCallsAreCountedByPath(t *testing.T) {
	f := func(most int, events, want string) {
		t.Helper()
		cfg := config()
		cfg.MaxPaths = most
		describe := func(s *script, b *callstack.Builder) string {
			all := pathsOf(b, func(fn uint32) string { return s.names[fn] })
			var texts []string
			for _, path := range slices.Sorted(maps.Keys(all)) {
				texts = append(texts, fmt.Sprintf("%s=%d/%d", path, all[path].Calls, all[path].Exclusive))
			}
			return strings.Join(texts, " ")
		}
		got, _ := build(t, cfg, events, describe, nil)
		compare(t, events, got, want)
	}
	const twice = "enter m 1; enter a 2; exit a 4; enter b 5; enter a 6; exit a 9; exit b 10; enter a 11; exit a 12; exit m 20"
	f(9, twice, "m=1/11 m/a=2/3 m/b=1/2 m/b/a=1/3")
	// Open calls do not count yet, but those in them do; steps make no difference.
	f(9, strings.Replace(twice, "; enter b", " | enter b", 1), "m/a=1/2 | m=1/11 m/a=2/3 m/b=1/2 m/b/a=1/3")
	// Threads are counted together.
	f(9, twice+"; @2 enter m 1; enter a 3; exit a 4; exit m 5", "m=2/14 m/a=3/4 m/b=1/2 m/b/a=1/3")
	// Those whose exit was lost are not counted, nor the call around them.
	f(9, "enter m 1; enter a 2; enter b 3; exit b 4; exit m 9; enter m 10; exit m 11", "m=1/1 m/a/b=1/1")
	// With fewer paths the deeper ones are one, also those whose calls are open.
	f(3, twice, "m=1/11 m/a=2/3 m/b=1/2 m/b/*=1/3")
	f(2, twice, "m=1/11 m/*=4/8")
	f(0, twice, "*=5/19")
	f(4, "enter m 1; enter a 2; enter a 3; enter a 4; enter a 5; exit a 6 | exit a 9; exit a 10; exit a 20; exit m 21",
		"m/a/a/a/*=1/1 | m=1/2 m/a=1/11 m/a/a=1/2 m/a/a/a=1/4 m/a/a/a/*=1/1")
}

// TestCallPathsEqualNaiveWalk walks over the events of each
// thread with a stack of names, and adds up the time between two events to the
// innermost function.
func TestCallPathsEqualNaiveWalk(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-BP4"} {
		for _, path := range tracetest.Recorded(t, run) {
			checkRecorded(t, run, path)
		}
	}
}

func checkRecorded(t *testing.T, run, path string) {
	t.Helper()
	r, err := bp.Open(path, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	reader := tau.NewReader(r, tau.Config{}, nil)
	b := callstack.NewBuilder(callstack.Default(trace.Microsecond), nil)
	type walker struct {
		path []string
		own  []uint64 // time in each function itself
		last trace.Ticks
	}
	walkers, want := make(map[trace.Thread]*walker), make(map[string]callpath.Sums)
	for {
		step, err := reader.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Begin(step.Index)
		for _, batch := range step.Batches {
			if walkers[batch.Thread] == nil {
				walkers[batch.Thread] = new(walker)
			}
			w := walkers[batch.Thread]
			for _, e := range batch.Events {
				if n := len(w.own); n > 0 {
					w.own[n-1] += uint64(e.Time - w.last)
				}
				switch w.last = e.Time; e.Kind {
				case trace.Enter:
					w.path, w.own = append(w.path, number(e.ID)), append(w.own, 0)
				case trace.Exit:
					n := len(w.own) - 1
					text := strings.Join(w.path, "/")
					want[text] = callpath.Sums{Calls: want[text].Calls + 1, Exclusive: want[text].Exclusive + w.own[n]}
					w.path, w.own = w.path[:n], w.own[:n]
				}
			}
			b.Add(batch.Thread, batch.Events)
		}
		b.Trim()
	}
	comparePaths(t, run, pathsOf(b, number), want)
	if len(want) < 5 {
		t.Errorf("%s has %d call paths, too few for a test", run, len(want))
	}
}
