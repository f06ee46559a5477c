package paramserver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// contribution is one that learned nothing yet.
func contribution(key trace.RankKey, step int) *deltas.Contribution {
	return &deltas.Contribution{
		StepKey: trace.StepKey{RankKey: key, Step: step},
		Host:    fmt.Sprint("host", key.Rank/2), First: trace.Ticks(1000 * step), Last: trace.Ticks(1000*step + 999),
		PathDepth: callpath.MaxDepth,
	}
}

// randomPaths are calls below a function that has not ended, and is in no profile.
func randomPaths(rng *rand.Rand) []callpath.NamedEntry {
	list := []callpath.NamedEntry{{Parent: -1, Name: "never ends"}}
	for range rng.IntN(12) {
		name := functionNames[rng.IntN(len(functionNames))]
		if rng.IntN(8) == 0 {
			name = callpath.OtherName
		}
		list = append(list, callpath.NamedEntry{
			Parent: int32(rng.IntN(len(list))), Name: name, Sums: callpath.Sums{Calls: 1 + rng.Uint64N(9), Exclusive: rng.Uint64N(5000)},
		})
	}
	return list
}

// found is what a rank learned of a function that took so long.
func found(key trace.RankKey, name string, times ...int64) deltas.Function {
	f := deltas.Function{
		FunctionStats: &summary.FunctionStats{FuncKey: trace.FuncKey{Program: key.Program, Name: name}}, Model: new(outlier.Model),
	}
	for _, v := range times {
		f.Model.Learn(v, 0)
		f.Exclusive.Add(uint64(v))
		f.Inclusive.Add(uint64(v) + 7)
	}
	return f
}

// learned is a contribution of one function.
func learned(key trace.RankKey, step int, name string, times ...int64) *deltas.Contribution {
	c := contribution(key, step)
	c.Functions = append(c.Functions, found(key, name, times...))
	return c
}

// joined is the contribution of steps of several ranks of a program.
func joined(all []*deltas.Contribution) *deltas.Contribution {
	j, sums := deltas.NewJoint(all[0].Program, 0), make(map[callpath.Context]*deltas.Delta)
	for _, c := range all {
		step := deltas.RankStep{StepKey: c.StepKey, Host: c.Host, First: c.First, Last: c.Last, Stream: c.Stream}
		for i := range c.Functions {
			f := &c.Functions[i]
			sum := at(sums, callpath.Context{FuncKey: f.FuncKey})
			sum.Model.Merge(f.Model)
			sum.Exclusive.Merge(&f.Exclusive)
			sum.Inclusive.Merge(&f.Inclusive)
			sum.PerStep.Add(uint64(f.Anomalies.Score.N))
			if !f.Anomalies.Empty() {
				step.Anomalies = append(step.Anomalies, summary.FunctionStats{FuncKey: f.FuncKey, Anomalies: f.Anomalies})
			}
		}
		for i := range c.Contexts {
			at(sums, c.Contexts[i].Context).Model.Merge(c.Contexts[i].Model)
		}
		for _, of := range c.Counters {
			j.AddCounter(new(*of))
		}
		if c.Load != nil {
			j.Load.Merge(c.Load, nil)
		}
		j.AddPaths(c.PathDepth, c.Paths)
		j.AddStep(step)
	}
	for of, sum := range sums {
		j.AddModel(of, sum)
	}
	return j.Contribution(all[0].Names)
}

// endContribution reports the last step of a rank.
func endContribution(key trace.RankKey, step int) *deltas.Contribution {
	c := contribution(key, step)
	c.Ended = true
	return c
}

var functionNames = []string{"main()", "MPI_Send()", "solve<double>", "\xff not UTF-8", "write \"all\"\n", "daxpy"}

// randomTrace is all that a rank ever learns, always the same for a seed. Steps in
// which it does nothing are left out. Its end is reported after its last step, or with
// readings of counters that came later.
func randomTrace(seed uint64, key trace.RankKey, steps int) []*deltas.Contribution {
	rng := rand.New(rand.NewPCG(seed, uint64(key.Program)<<32|uint64(key.Rank)))
	var all []*deltas.Contribution
	last := 0
	for step := range steps {
		if step > 0 && rng.IntN(5) == 0 {
			continue
		}
		last = step
		all = append(all, randomStep(rng, key, step))
	}
	end := endContribution(key, last)
	if rng.IntN(2) == 0 {
		end = endContribution(key, last+1)
		end.Counters = append(end.Counters, &summary.Counter{
			FuncKey: trace.FuncKey{Program: key.Program, Name: "late"},
			Values:  *sumsOf(3, uint64(key.Rank)),
		})
	}
	return append(all, end)
}

// loadNames are the functions of several programs by an analyzer's numbers.
var loadNames = func() (all []trace.FuncKey) {
	for program := range trace.Program(4) {
		for _, name := range functionNames {
			all = append(all, trace.FuncKey{Program: program, Name: name})
		}
	}
	return all
}()

// randomLoad is work of the functions of a contribution around its step. It may be nil.
func randomLoad(rng *rand.Rand, c *deltas.Contribution) *workload.Load {
	l := workload.New()
	for _, f := range c.Functions {
		exit := trace.Ticks(1e6 + 3e5*c.Step + rng.IntN(4e5))
		entry := exit - trace.Ticks(rng.IntN(2e5))
		lane := l.Lane(workload.LaneKey{RankKey: c.RankKey, Thread: trace.Thread(rng.IntN(2))})
		if lane.Host = c.Host; rng.IntN(3) == 0 {
			l.AddWait(lane, entry, exit, uint64(exit-entry)/2, rng.IntN(2) == 0)
			continue
		}
		work := l.Work(workload.Work{
			Program: c.Program, Function: uint32(slices.Index(loadNames, f.FuncKey)), Path: callpath.Hash(rng.IntN(3)).Then(f.Name),
		})
		l.Add(lane, entry, exit, []workload.Cell{{Work: work, Sums: callpath.Sums{Calls: 1, Exclusive: uint64(exit - entry)}}})
	}
	if l.Empty() {
		return nil
	}
	return l
}

func randomStep(rng *rand.Rand, key trace.RankKey, step int) *deltas.Contribution {
	c := contribution(key, step)
	for i, name := range functionNames {
		if rng.IntN(3) == 0 {
			continue
		}
		f := found(key, name)
		paths := contexts(f.FuncKey, step)
		for range rng.IntN(4) {
			v := 100*(int64(i)+1) + rng.Int64N(50)
			f.Model.Learn(v, 0)
			if len(paths) > 0 {
				paths[int(v)%len(paths)].Model.Learn(v, 0)
			}
			f.Exclusive.Add(uint64(v))
			f.Inclusive.Add(uint64(v) + rng.Uint64N(9))
			if rng.IntN(6) == 0 {
				f.Anomalies.Add(int32(step), c.First+trace.Ticks(rng.IntN(400)), c.First+500, rng.Float64()*20, trace.Ticks(v))
			}
		}
		c.Functions = append(c.Functions, f)
		c.Contexts = append(c.Contexts, paths...)
	}
	c.Paths = randomPaths(rng)
	c.Load, c.Names = randomLoad(rng, c), loadNames
	for _, name := range []string{"bytes", "pages"} {
		if rng.IntN(2) == 0 {
			c.Counters = append(c.Counters, &summary.Counter{
				FuncKey: trace.FuncKey{Program: key.Program, Name: name},
				Values:  *sumsOf(rng.Uint64N(1000), rng.Uint64N(9)),
			})
		}
	}
	return c
}

// contexts are up to two call paths of a function that learned nothing yet.
func contexts(name trace.FuncKey, step int) (paths []deltas.Context) {
	for _, caller := range []string{"main()", "solve<double>", "daxpy"}[step%2 : 1+step%3] {
		paths = append(paths, deltas.Context{
			Context: callpath.Context{FuncKey: name, Path: callpath.Hash(0).Then(caller).Then(name.Name)}, Model: new(outlier.Model),
		})
	}
	return paths
}

// whole is a function with all its paths.
func whole(name trace.FuncKey) callpath.Context { return callpath.Context{FuncKey: name} }

// eachModel calls f with all models of a contribution.
func eachModel(c *deltas.Contribution, f func(callpath.Context, *outlier.Model)) {
	for i := range c.Functions {
		f(whole(c.Functions[i].FuncKey), c.Functions[i].Model)
	}
	for i := range c.Contexts {
		f(c.Contexts[i].Context, c.Contexts[i].Model)
	}
}

func sumsOf(values ...uint64) *stats.Sums {
	s := new(stats.Sums)
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// oracle is the expected final state of a run: each contribution added once, in order of
// ranks and steps.
type oracle struct {
	models map[callpath.Context]*outlier.Model
	live   *summary.Live
	next   map[trace.RankKey]uint32
	paths  map[string]callpath.Sums // by program and names
	load   *workload.Load
}

func newOracle(traces map[trace.RankKey][]*deltas.Contribution, number func(trace.FuncKey) int) *oracle {
	o := &oracle{
		models: make(map[callpath.Context]*outlier.Model), live: summary.NewLive(), next: make(map[trace.RankKey]uint32),
		paths: make(map[string]callpath.Sums), load: workload.New(),
	}
	for key, trace := range traces {
		for i, c := range trace {
			o.add(key, c, i == len(trace)-1 && c.Step == trace[max(i-1, 0)].Step, number)
		}
	}
	return o
}

func (o *oracle) add(key trace.RankKey, c *deltas.Contribution, again bool, number func(trace.FuncKey) int) {
	o.next[key] = uint32(c.Step) + 1
	report := &summary.StepReport{RankKey: key, Step: int32(c.Step), First: c.First, Last: c.Last}
	eachModel(c, func(context callpath.Context, m *outlier.Model) {
		if m.Count() > 0 {
			at(o.models, context).Merge(m)
		}
	})
	for i := range c.Functions {
		f := &c.Functions[i]
		id := number(f.FuncKey)
		n := uint64(f.Anomalies.Score.N)
		o.live.AddFunction(&summary.FunctionStats{
			ID: id, FuncKey: f.FuncKey, Exclusive: f.Exclusive, Inclusive: f.Inclusive,
			PerStep: *sumsOf(n),
		})
		if n > 0 {
			m := f.Anomalies
			m.Count = *sumsOf(n)
			report.Scores.Merge(m.Score)
			report.Functions = append(report.Functions, summary.FunctionStats{ID: id, Anomalies: m})
		}
	}
	for _, counter := range c.Counters {
		o.live.AddCounter(counter)
	}
	if c.Load != nil {
		o.load.Merge(c.Load, func(_ trace.Program, function uint32) uint32 { return uint32(number(c.Names[function])) })
	}
	texts := make([]string, len(c.Paths))
	for i, p := range c.Paths {
		from := fmt.Sprint(c.Program)
		if p.Parent >= 0 {
			from = texts[p.Parent]
		}
		if texts[i] = from + "/" + p.Name; strings.HasSuffix(from, callpath.OtherName) {
			texts[i] = from // which includes everything below it
		}
		s := o.paths[texts[i]]
		if s = (callpath.Sums{Calls: s.Calls + p.Calls, Exclusive: s.Exclusive + p.Exclusive}); s.Calls > 0 {
			o.paths[texts[i]] = s
		}
	}
	if !again {
		o.live.AddRank(key, sumsOf(uint64(report.Scores.N)))
		o.live.AddStep(report)
	}
}

// wantSamePaths fails unless a server has counted all calls by call path, once.
func wantSamePaths(tb testing.TB, s *State, o *oracle) {
	tb.Helper()
	got, list := make(map[string]callpath.Sums), s.Paths()
	texts := make([]string, len(list))
	for i, p := range list {
		from := fmt.Sprint(p.Program)
		if p.Parent >= 0 {
			from = texts[p.Parent]
		}
		if texts[i] = from + "/" + p.Name; p.Calls > 0 {
			got[texts[i]] = p.Sums
		}
	}
	if !maps.Equal(got, o.paths) {
		tb.Errorf("%d call paths, want %d", len(got), len(o.paths))
		for _, path := range slices.Sorted(maps.Keys(o.paths)) {
			if got[path] != o.paths[path] {
				tb.Fatalf("%s: got %v, want %v", path, got[path], o.paths[path])
			}
		}
	}
}
