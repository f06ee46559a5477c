package analyzer_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// paths returns the call paths of an outcome that have calls, by name.
func paths(t *testing.T, o *summary.Outcome) map[string]callpath.Sums {
	t.Helper()
	texts, all := make([]string, len(o.Paths)), make(map[string]callpath.Sums)
	for i, p := range o.Paths {
		texts[i] = p.Name
		if p.Parent >= 0 {
			texts[i] = texts[p.Parent] + " > " + p.Name
		}
		if _, twice := all[texts[i]]; twice {
			t.Errorf("%s occurs twice", texts[i])
		}
		if p.Calls > 0 {
			all[texts[i]] = p.Sums
		}
	}
	return all
}

// pathsOf returns the call paths of a profile by name.
func pathsOf(t *testing.T, p *callpath.Profile) map[string]callpath.Sums {
	t.Helper()
	o := summary.NewOutcome(nil, nil)
	o.AddPaths(0, p.Append(nil), func(fn uint32) (int, string) { return 0, p.Name(fn) })
	return paths(t, o)
}

// comparePaths compares paths with those of a naive walk, in which code between calls is part of their caller.
func comparePaths(t *testing.T, what string, got, want map[string]callpath.Sums) {
	t.Helper()
	for path, sums := range maps.Clone(got) {
		if i := strings.LastIndex(path, " > "+trace.CodePrefix); i >= 0 {
			caller := got[path[:i]]
			caller.Exclusive += sums.Exclusive
			got[path[:i]] = caller
			delete(got, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s: %s: got %v, want %v", what, path, got[path], want[path])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d paths, want %d", what, len(got), len(want))
	}
}

// walk adds the time between two events of a thread to the innermost function.
func walk(t *testing.T, dataset string, into map[string]callpath.Sums) {
	t.Helper()
	r, err := bp.Open(dataset, bp.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	reader := tau.NewReader(r, tau.Config{}, nil)
	type frame struct {
		path string
		time trace.Ticks
	}
	type key struct {
		rank   trace.Rank
		thread trace.Thread
	}
	stacks, last := make(map[key][]frame), make(map[key]trace.Ticks)
	for {
		step, err := reader.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range step.Batches {
			k := key{b.Rank, b.Thread}
			for _, e := range b.Events {
				stack := stacks[k]
				if n := len(stack); n > 0 {
					stack[n-1].time += e.Time - last[k]
				}
				last[k] = e.Time
				switch n := len(stack); e.Kind {
				case trace.Enter:
					path, ok := reader.Names.Func(b.Rank, e.Func())
					if !ok {
						t.Fatalf("function %d has no name", e.Func())
					}
					if n > 0 {
						path = stack[n-1].path + " > " + path
					}
					stacks[k] = append(stack, frame{path: path})
				case trace.Exit:
					f := stack[n-1]
					into[f.path] = callpath.Sums{Calls: into[f.path].Calls + 1, Exclusive: into[f.path].Exclusive + uint64(f.time)}
					stacks[k] = stack[:n-1]
				}
			}
		}
	}
}

func TestCallPathsEqualNaiveWalk(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-BP4", "ring-onefile-BP5"} {
		datasets := tracetest.Recorded(t, run)
		want := make(map[string]callpath.Sums)
		for _, d := range datasets {
			walk(t, d, want)
		}
		a := analyze(t, datasets, nil)
		comparePaths(t, run, paths(t, a.Outcome), want)
		comparePaths(t, run+" while it is written", pathsWhileWritten(t, datasets), want)
		slices.Reverse(datasets)
		b := analyze(t, datasets, nil)
		if !slices.Equal(a.Paths, b.Paths) {
			t.Errorf("%s: the result depends on the order of traces", run)
		}
	}
}

func pathsWhileWritten(t *testing.T, datasets []string) map[string]callpath.Sums {
	t.Helper()
	l := newLedger()
	res, _ := follow(t, l, analyzer.Online{Find: inputsOf(datasets)})
	if len(res.Paths) > 0 || res.Tally.Count(tally.PathUnnamed) > 0 {
		t.Errorf("%d call paths and %d calls were not contributed step by step", len(res.Paths), res.Tally.Count(tally.PathUnnamed))
	}
	return pathsOf(t, l.paths)
}

func TestCallPathsAddUpToProfiles(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-BP5"} {
		a := analyze(t, tracetest.Recorded(t, run), nil)
		type sums struct {
			calls uint64
			time  float64
		}
		got := make(map[int]sums)
		for _, p := range a.Paths {
			s := got[p.ID]
			got[p.ID] = sums{s.calls + p.Calls, s.time + float64(p.Exclusive)}
		}
		for _, f := range a.Functions {
			if want := (sums{f.Exclusive.Count(), f.Exclusive.Summary().Accumulate}); got[f.ID] != want {
				t.Errorf("%s: %s: paths have %v, the profile %v", run, f.Name, got[f.ID], want)
			}
		}
	}
}

// TestCallPathsDoNotDependOnSteps writes the same events as one step and as many.
func TestCallPathsDoNotDependOnSteps(t *testing.T) {
	const calls = 60
	record := func(every int) []string {
		p := newProgram()
		p.enter(1)
		for i := range calls {
			p.enter(2)
			p.call(3, uint64(10+i))
			if i%every == every-1 {
				p.step()
			}
			p.call(2, uint64(100+i))
			p.exit(2)
		}
		return p.write(t) // main does not end
	}
	want := map[string]callpath.Sums{
		"main > work": {Calls: calls, Exclusive: 2 * calls}, "main > work > other": {Calls: calls, Exclusive: 10*calls + calls*(calls-1)/2},
		"main > work > work": {Calls: calls, Exclusive: 100*calls + calls*(calls-1)/2},
	}
	whole := analyze(t, record(calls+1), nil)
	comparePaths(t, "one step", paths(t, whole.Outcome), want)
	for _, every := range []int{1, 7} {
		datasets := record(every)
		a := analyze(t, datasets, nil)
		if !slices.Equal(a.Paths, whole.Paths) {
			t.Errorf("a step for %d calls: got %v, want %v", every, a.Paths, whole.Paths)
		}
		comparePaths(t, "step by step", pathsWhileWritten(t, datasets), want)
	}
	if main := whole.Paths[0]; main.Name != "main" || main.ID != -1 || main.Calls != 0 || main.Parent != -1 {
		t.Errorf("the first path is %+v, want main without calls", main)
	}
}

func TestCallPathsWaitForNames(t *testing.T) {
	p := newProgram()
	p.enter(1)
	for range 40 {
		p.call(9, 100)
	}
	p.step()
	p.at().Attrs = [][2]string{{"timer 9", "late()"}}
	p.call(9, 100)
	datasets := p.write(t)
	want := map[string]callpath.Sums{"main > late()": {Calls: 41, Exclusive: 4100}}
	a := analyze(t, datasets, nil)
	comparePaths(t, "a name that is late", paths(t, a.Outcome), want)
	comparePaths(t, "a name that is late, step by step", pathsWhileWritten(t, datasets), want)
}

func TestUnnamedCallPathsAreCounted(t *testing.T) {
	p := newProgram()
	p.enter(1)
	p.enter(9)
	p.call(2, 50)
	p.call(2, 50)
	p.exit(9)
	p.call(2, 30)
	p.exit(1)
	datasets := p.write(t)
	want := map[string]callpath.Sums{"main": {Calls: 1, Exclusive: 1}, "main > work": {Calls: 1, Exclusive: 30}}
	a := analyze(t, datasets, nil)
	got := paths(t, a.Outcome)
	want["main"] = callpath.Sums{Calls: 1, Exclusive: got["main"].Exclusive} // gaps between calls
	comparePaths(t, "no name", got, want)
	if n := a.Tally.Count(tally.PathUnnamed); n != 3 {
		t.Errorf("%d calls are tallied, want 3", n)
	}
	l := newLedger()
	res, _ := follow(t, l, analyzer.Online{Find: inputsOf(datasets)})
	comparePaths(t, "no name, step by step", pathsOf(t, l.paths), want)
	if n := res.Tally.Count(tally.PathUnnamed); n != 3 {
		t.Errorf("step by step %d calls are tallied, want 3", n)
	}
}

// TestFoldedCallPathsAreCounted uses five functions that call each other in all ways to a
// depth of 7.
func TestFoldedCallPathsAreCounted(t *testing.T) {
	tracetest.SkipShort(t, "analyzes large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	const depth = 7
	p := newProgram()
	for fn := 4; fn <= 6; fn++ {
		p.at().Attrs = append(p.at().Attrs, [2]string{fmt.Sprint("timer ", fn), fmt.Sprint("function ", fn)})
	}
	var recurse func(n int)
	recurse = func(n int) {
		for fn := uint64(2); fn <= 6 && n > 0; fn++ {
			p.enter(fn)
			recurse(n - 1)
			p.exit(fn)
		}
		if n == depth/2 {
			p.step()
		}
	}
	recurse(depth)
	datasets := p.write(t)
	a := analyze(t, datasets, nil)
	deepest, calls, folded := 0, uint64(0), uint64(0)
	for path, s := range paths(t, a.Outcome) {
		deepest = max(deepest, strings.Count(path, " > "))
		calls += s.Calls
		if strings.HasSuffix(path, " > "+callpath.OtherName) {
			folded += s.Calls
		}
	}
	const all, kept, within = 97_655, 6, 19_530 // 5 + 5² + … to depth 7 and 6; callpath.MaxPaths are 20,000
	if calls != all || folded != all-within || deepest != kept || a.Tally.Count(tally.PathFolded) != int64(folded) {
		t.Errorf("%d calls, %d folded below depth %d, %d tallied; want %d and %d below %d",
			calls, folded, deepest, a.Tally.Count(tally.PathFolded), all, all-within, kept)
	}
	comparePaths(t, "step by step", pathsWhileWritten(t, datasets), paths(t, a.Outcome))
}

// TestDeepRecursionHasPaths has a recursion of two functions to a depth of 1,000.
func TestDeepRecursionHasPaths(t *testing.T) {
	p := newProgram()
	const depth = 1000
	for i := range uint64(depth) {
		p.enter(2 + i%2)
	}
	for i := range uint64(depth) {
		p.exit(2 + (depth-1-i)%2)
	}
	p.step()
	a := analyze(t, p.write(t), nil)
	calls := uint64(0)
	for path, s := range paths(t, a.Outcome) {
		calls += s.Calls
		if strings.Contains(path, callpath.OtherName) {
			t.Errorf("%d calls of %s", s.Calls, path)
		}
	}
	if calls != depth || a.Tally.Count(tally.PathFolded) != 0 || len(a.Paths) > 2*callpath.MaxRecursion {
		t.Errorf("%d calls, %d folded, %d paths", calls, a.Tally.Count(tally.PathFolded), len(a.Paths))
	}
}
