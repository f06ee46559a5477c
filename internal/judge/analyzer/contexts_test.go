package analyzer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// twoCallers is a program in which main calls work, which takes usual(false)
// microseconds, and other, which calls work, which takes usual(true). The calls of work
// by main with the given numbers take 50 ms.
func twoCallers(seed uint64, calls int, usual func(bool) uint64, slow ...int) *program {
	p := newProgram()
	rng := rand.New(rand.NewPCG(seed, 1))
	p.enter(1)
	for i := range calls {
		if i%200 == 199 {
			p.step()
		}
		v := usual(false) + rng.Uint64N(40)
		if slices.Contains(slow, i) {
			v = 50_000
		}
		p.call(2, v)
		p.enter(3)
		p.now += 500
		p.call(2, usual(true)+rng.Uint64N(40))
		p.exit(3)
	}
	p.exit(1)
	return p
}

func byCaller(fast, slow uint64) func(bool) uint64 {
	return func(other bool) uint64 {
		if other {
			return slow
		}
		return fast
	}
}

var plantedCalls = []int{120, 480, 481, 900, 1500}

// flags returns the anomalies of a function that were not withdrawn.
func (a analyzed) flags(t *testing.T, function string) []provenance.Record {
	t.Helper()
	return slices.DeleteFunc(a.records(t, "anomalies"), func(r provenance.Record) bool {
		return r.Status == provenance.Withdrawn || r.Func != function
	})
}

// callsOf returns the number of calls in the model that judged a record.
func callsOf(t *testing.T, r *provenance.Record) (n uint64) {
	t.Helper()
	var params struct {
		Histogram struct {
			Counts []uint64 `json:"Histogram Bin Counts"`
		} `json:"histogram"`
	}
	if err := json.Unmarshal(r.AlgoParams, &params); err != nil {
		t.Fatal(err)
	}
	for _, c := range params.Histogram.Counts {
		n += c
	}
	return n
}

func TestCallsAreComparedWithThoseOfSameCaller(t *testing.T) {
	datasets := twoCallers(1, 2000, byCaller(1000, 50_000), plantedCalls...).write(t)
	for _, change := range []func(*analyzer.Config){
		nil,
		func(c *analyzer.Config) { c.Passes = 2 },
		func(c *analyzer.Config) { c.RankScope = true },
	} {
		a := analyze(t, datasets, change)
		flags := a.flags(t, "work")
		if len(flags) != len(plantedCalls) {
			t.Errorf("%d anomalies, want %d", len(flags), len(plantedCalls))
		}
		for i := range flags {
			r := &flags[i]
			if len(r.CallStack) != 2 || r.RuntimeExclusive != 50_000 || r.LostTime < 48_900 || r.LostTime > 49_100 {
				t.Errorf("%s with %d callers took %d us and lost %d us", r.Func, len(r.CallStack)-1, r.RuntimeExclusive, r.LostTime)
			}
			if n := callsOf(t, r); n != 1999 || !strings.Contains(r.Why, "over 1,999 calls on this call path") { // without the first
				t.Errorf("judged by %d calls, want those by main: %s", n, r.Why)
			}
		}
		for _, r := range a.records(t, "normalexecs") {
			if r.Func == "work" && len(r.CallStack) != 2 {
				t.Errorf("a typical execution of work has %d callers, want one", len(r.CallStack)-1)
			}
		}
	}
	for _, detector := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD, outlier.COPOD} {
		a := analyze(t, datasets, func(c *analyzer.Config) { c.Outlier.Algorithm = detector })
		for _, r := range a.flags(t, "work") {
			if r.RuntimeExclusive == 50_000 {
				t.Errorf("%s does not compare with all calls of the function", detector)
			}
		}
		if bytes.Count(a.Models.AppendBinary(nil), []byte("work")) != 1 || len(a.Models.Functions()[0].Export().Paths) > 0 {
			t.Errorf("%s learns by call path", detector)
		}
	}
}

func TestCallersThatDoNotMatterAreComparedTogether(t *testing.T) {
	a := analyze(t, twoCallers(2, 2000, byCaller(1000, 1000), plantedCalls...).write(t), nil)
	flags := a.flags(t, "work")
	for i := range flags {
		if n := callsOf(t, &flags[i]); n != 3999 {
			t.Errorf("judged by %d calls, want all", n)
		}
	}
	if len(flags) != len(plantedCalls) {
		t.Errorf("%d anomalies, want %d", len(flags), len(plantedCalls))
	}
}

// works makes fn call work, which makes a number of calls and takes some time itself.
func (p *program) works(calls int, micros uint64) {
	p.enter(2)
	p.now += micros
	for range calls {
		p.call(3, 5)
	}
	p.exit(2)
}

func TestCallsAreComparedWithThoseOfSameWork(t *testing.T) {
	f := func(what string, want, wantCalls int, call func(p *program, i int, noise uint64)) {
		t.Helper()
		p, rng := newProgram(), rand.New(rand.NewPCG(7, 1))
		p.enter(1)
		for i := range 2000 {
			if i%200 == 199 {
				p.step()
			}
			call(p, i, rng.Uint64N(40))
		}
		p.exit(1)
		flags := analyze(t, p.write(t), nil).flags(t, "work")
		if len(flags) != want {
			t.Errorf("%s: %d anomalies, want %d", what, len(flags), want)
		}
		for i := range flags {
			if n := callsOf(t, &flags[i]); n != uint64(wantCalls) {
				t.Errorf("%s: judged by %d calls, want %d", what, n, wantCalls)
			}
		}
	}
	// One call in ten makes 20 calls instead of 2, and takes 50 ms instead of 1.
	f("usual work", len(plantedCalls), 1799, func(p *program, i int, noise uint64) {
		switch {
		case i%10 == 5:
			p.works(20, 50_000+noise)
		case slices.Contains(plantedCalls, i):
			p.works(2, 50_000)
		default:
			p.works(2, 1000+noise)
		}
	})
	// What one call in a hundred does is not usual.
	f("rare work", 20, 1999, func(p *program, i int, noise uint64) {
		if i%100 == 50 {
			p.works(20, 50_000+noise)
			return
		}
		p.works(2, 1000+noise)
	})
	// Rare work on a slow path is compared with that path.
	f("slow path", 0, 0, func(p *program, i int, noise uint64) {
		p.works(7, 1000+noise)
		if i%10 == 0 {
			p.enter(3)
			p.works(7+i%500/490, 50_000+noise)
			p.exit(3)
		}
	})
}

// Rare callers have too few calls to be compared with each other.
func TestRareCallersAreComparedWithAll(t *testing.T) {
	p := twoCallers(3, 1000, byCaller(1000, 1000))
	p.enter(3)
	p.enter(3)
	for range 10 {
		p.call(2, 50_000)
	}
	p.exit(3)
	p.exit(3)
	flags := analyze(t, p.write(t), nil).flags(t, "work")
	if len(flags) != 10 {
		t.Errorf("%d anomalies of work, want 10", len(flags))
	}
}

// twoCallersOnRanks writes the traces of four ranks of twoCallers.
func twoCallersOnRanks(t *testing.T) (datasets []string) {
	t.Helper()
	for rank := range uint64(4) {
		p := twoCallers(rank, 600, byCaller(1000, 20_000*(1+rank%2)), int(100+rank))
		p.setRank(rank)
		datasets = append(datasets, p.writeAs(t, fmt.Sprintf("tau-metrics-app-%d.bp", rank)))
	}
	return datasets
}

func TestContextsDoNotDependOnWorkersOrOrder(t *testing.T) {
	datasets := twoCallersOnRanks(t)
	want := analyze(t, datasets, func(c *analyzer.Config) { c.Workers = 1 })
	if n := len(want.flags(t, "work")); n != 4 {
		t.Errorf("%d anomalies, want 4", n)
	}
	backwards := slices.Clone(datasets)
	slices.Reverse(backwards)
	got := analyze(t, backwards, func(c *analyzer.Config) { c.Workers = 5 })
	if !maps.Equal(got.hashes(t), want.hashes(t)) || !bytes.Equal(got.Models.AppendBinary(nil), want.Models.AppendBinary(nil)) {
		t.Error("results depend on the order of traces or the number of workers")
	}
	l := newLedger()
	res, list := follow(t, l, analyzer.Online{Find: inputsOf(datasets)})
	if !bytes.Equal(res.Models.AppendBinary(nil), want.Models.AppendBinary(nil)) {
		t.Error("the models of traces that are being written differ")
	}
	for _, r := range want.records(t, "anomalies") {
		if s := list.final[r.EventID]; (s == provenance.Withdrawn) != (r.Status == provenance.Withdrawn) {
			t.Errorf("%s is %s, while it is written %s", r.EventID, r.Status, s)
		}
	}
	for _, f := range res.Models.Functions() {
		for path, m := range f.Export().Paths {
			if m.Count() == 0 {
				t.Errorf("%s has a path without calls, which is not shared", f.Name)
			}
			if got := l.contexts[callpath.Context{FuncKey: f.FuncKey, Path: path}]; got == nil ||
				!bytes.Equal(got.AppendBinary(nil), m.AppendBinary(nil)) {
				t.Errorf("the shares of a path of %s do not add up to its model", f.Name)
			}
		}
	}
}

func TestModelFileKeepsCallers(t *testing.T) {
	first := analyze(t, twoCallers(1, 2000, byCaller(1000, 50_000)).write(t), nil)
	b := first.Models.AppendBinary(nil)
	loaded, err := analyzer.ReadModels(b, outlier.NewRules(outlier.Default()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(loaded.AppendBinary(nil), b) {
		t.Error("the models change when they are stored")
	}
	a := analyze(t, twoCallers(4, 20, byCaller(1000, 50_000), 7).write(t), func(c *analyzer.Config) { c.InitialModels, c.Freeze = loaded, true })
	if flags := a.flags(t, "work"); len(flags) != 1 || flags[0].RuntimeExclusive != 50_000 {
		t.Errorf("%d anomalies, want one", len(flags))
	}
	if !bytes.Equal(a.Models.AppendBinary(nil), b) {
		t.Error("frozen models have learned")
	}
	for cut := range len(b) {
		if _, err := analyzer.ReadModels(b[:cut], outlier.NewRules(outlier.Default())); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", cut, len(b))
		}
	}
}

// TestCallsOnFoldedPathsAreComparedWithAll has calls of leaf at a depth that is folded
// later. One of them is slow.
func TestCallsOnFoldedPathsAreComparedWithAll(t *testing.T) {
	p := newProgram()
	p.at().Attrs = append(p.at().Attrs, [2]string{"timer 4", "leaf"})
	deep := func(f func()) {
		for range 20 {
			p.enter(1)
		}
		f()
		for range 20 {
			p.exit(1)
		}
		p.step()
	}
	leaves := func(n int, slow bool) {
		for i := range n {
			p.call(4, uint64(1000+i%40))
		}
		if slow {
			p.call(4, 50_000)
		}
	}
	leaves(200, false)
	deep(func() { leaves(100, true) })
	var recurse func(n int)
	recurse = func(n int) {
		for fn := uint64(2); fn <= 3 && n > 0; fn++ {
			p.enter(fn)
			recurse(n - 1)
			p.exit(fn)
		}
	}
	recurse(15)
	p.step()
	deep(func() { leaves(100, true) })
	a := analyze(t, p.write(t), nil)
	flags := a.flags(t, "leaf")
	for i := range flags {
		if n := callsOf(t, &flags[i]); n != 401 {
			t.Errorf("judged by %d calls, want 401", n)
		}
	}
	if len(flags) != 2 || a.Tally.Count(tally.PathFolded) == 0 {
		t.Errorf("%d anomalies, %d calls on folded paths, want 2 and some", len(flags), a.Tally.Count(tally.PathFolded))
	}
}

func TestFunctionsWithTooManyCallersKeepSample(t *testing.T) {
	p := newProgram()
	const callers = 300
	for c := range uint64(callers) {
		p.at().Attrs = append(p.at().Attrs, [2]string{fmt.Sprintf("timer %d", 100+c), fmt.Sprint("caller ", c)})
	}
	for i := range uint64(40) {
		for c := range uint64(callers) {
			p.enter(100 + c)
			p.call(2, 1000+100*c+i)
			p.exit(100 + c)
		}
		p.step()
	}
	a := analyze(t, p.write(t), nil)
	for _, f := range a.Models.Functions() {
		if l := f.Export(); f.Name == "work" && (l.Level != 1 || int64(len(l.Paths)) != callers-a.Tally.Count(tally.PathPooled)) {
			t.Errorf("%d paths at level %d, %d others, want %d together", len(l.Paths), l.Level, a.Tally.Count(tally.PathPooled), callers)
		}
	}
	if n := a.Tally.Count(tally.PathPooled); n < 100 || n > 200 {
		t.Errorf("%d paths are judged with the function, want about half", n)
	}
}

func TestSalvageJudgesByCaller(t *testing.T) {
	var learned summary.Learned
	path := callpath.Hash(0).Then("main").Then("work").With(callpath.ClassOf(0))
	fast := outlier.Model{}
	for i := range int64(1000) {
		fast.Learn(1000+i%40, 0)
		learned.Model.Learn(1000+i%40, 0)
		learned.Model.Learn(50_000+i%40, 0)
	}
	learned.Set(path, fast)
	models := analyzer.NewModels(outlier.NewRules(outlier.Default()))
	models.Add(&summary.FunctionStats{FuncKey: trace.FuncKey{Name: "work"}}, &learned)
	for caller, want := range map[string]provenance.Status{"main": provenance.Confirmed, "other": provenance.Withdrawn} {
		r := &provenance.Record{Func: "work", RuntimeExclusive: 50_000, CallStack: []provenance.StackEntry{{Func: "work"}, {Func: caller}}}
		models.Salvage(false).Add(r)
		if r.Status != want {
			t.Errorf("a call by %s is %s, want %s", caller, r.Status, want)
		}
	}
}

// TestSlowModesAreCountedByTheModel has one call in twenty by main that takes 50 ms.
func TestSlowModesAreCountedByTheModel(t *testing.T) {
	var slow []int
	for i := 10; i < 2000; i += 20 {
		slow = append(slow, i)
	}
	path := callpath.Hash(0).Then("main").Then("work").With(callpath.ClassOf(0))
	for _, other := range []uint64{1000, 50_000} { // time of calls by other
		a := analyze(t, twoCallers(1, 2000, byCaller(1000, other), slow...).write(t), nil)
		if len(a.Modes) != 1 {
			t.Fatalf("got %+v", a.Modes)
		}
		m := a.Modes[0]
		if m.Function != "work" || m.Path != path || m.Calls != uint64(len(slow)) || m.Kept != 1 || m.Slow < 49_900 || m.Slow > 50_800 ||
			m.Lost < 4_850_000 || m.Lost > 4_950_000 || m.Usual < 1000 || m.Usual > 1040 {
			t.Errorf("got %+v", m)
		}
	}
}

func TestSalvageRecognizesSlowModes(t *testing.T) {
	var learned summary.Learned
	for i := range int64(1000) {
		learned.Model.Learn(1000+i%40, 0)
	}
	for i := range int64(50) {
		learned.Model.Learn(50_000+i, 0)
	}
	models := analyzer.NewModels(outlier.NewRules(outlier.Default()))
	models.Add(&summary.FunctionStats{FuncKey: trace.FuncKey{Name: "work"}}, &learned)
	r := &provenance.Record{Func: "work", RuntimeExclusive: 50_000, CallStack: []provenance.StackEntry{{Func: "work"}}}
	if models.Salvage(false).Add(r); r.Status != provenance.Confirmed || r.Kind != provenance.Recurring {
		t.Errorf("got status %s and kind %s", r.Status, r.Kind)
	}
}
