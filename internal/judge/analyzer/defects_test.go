package analyzer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// These tests cover programs for which the original system failed.

// program writes the trace of an artificial program, call by call.
type program struct {
	steps []tracetest.Step
	now   uint64
}

func newProgram() *program {
	p := &program{now: 1_000_000}
	p.step()
	p.steps[0].Attrs = slices.Concat(tracetest.EventTypes, [][2]string{
		{"timer 1", "main"},
		{"timer 2", "work"},
		{"timer 3", "other"},
		{"counter 1", "a counter"},
		{"MetaData:0:0:Hostname", "node7"},
		{"MetaData:0:0:my timer resolution", "1"},
	})
	return p
}

func (p *program) step() { p.steps = append(p.steps, tracetest.Step{}) }

func (p *program) at() *tracetest.Step { return &p.steps[len(p.steps)-1] }

func (p *program) enter(fn uint64) {
	p.now++
	p.at().Funcs = append(p.at().Funcs, [6]uint64{0, 0, 0, 0, fn, p.now})
}

func (p *program) exit(fn uint64) {
	p.at().Funcs = append(p.at().Funcs, [6]uint64{0, 0, 0, 1, fn, p.now})
}

// call adds a call of that many microseconds.
func (p *program) call(fn, micros uint64) {
	p.enter(fn)
	p.now += micros
	p.exit(fn)
}

func (p *program) write(t *testing.T) []string {
	t.Helper()
	return []string{tracetest.WriteBP4(t, t.TempDir(), p.steps)}
}

func TestStepWithoutEndedCallsIsAccepted(t *testing.T) {
	p := newProgram()
	p.enter(1)
	for range 40 {
		p.call(2, 100)
	}
	p.step() // one call continues over three steps, one of which is empty
	p.enter(3)
	p.step()
	p.step()
	p.now += 1000
	p.exit(3)
	p.step()
	for range 40 {
		p.call(2, 100)
	}
	p.exit(1)
	a := analyze(t, p.write(t), nil)
	if a.Totals.Steps != 5 || a.Totals.Calls != 82 {
		t.Errorf("%d steps and %d calls, want 5 and 82", a.Totals.Steps, a.Totals.Calls)
	}
}

func TestMisorderedRowsAndBadAttributesAreAccepted(t *testing.T) {
	p := newProgram()
	for range 50 {
		p.call(2, 100)
	}
	s := p.at()
	s.Counters = [][6]uint64{{0, 0, 0, 1, 5, p.now - 10}, {0, 0, 0, 1, 6, p.now - 20}}
	s.Comms = [][8]uint64{{0, 0, 0, 2, 1, 1, 8, p.now - 10}, {0, 0, 0, 3, 1, 1, 8, p.now - 20}}
	s.Attrs = append(s.Attrs, [2]string{"timer without a number", "x"})
	a := analyze(t, p.write(t), nil)
	if a.Totals.Calls != 50 || a.Tally.Count(tally.OutOfOrder) != 2 || a.Tally.Count(tally.AttributeMalformed) != 1 {
		t.Errorf("%d calls, %d out of order, %d malformed", a.Totals.Calls, a.Tally.Count(tally.OutOfOrder),
			a.Tally.Count(tally.AttributeMalformed))
	}
}

func TestLostExitDoesNotAffectThread(t *testing.T) {
	p := newProgram()
	p.enter(1)
	p.enter(3) // never ends
	p.exit(1)
	for range 100 {
		p.call(2, 100)
	}
	a := analyze(t, p.write(t), nil)
	if a.Totals.Calls != 100 || a.Tally.Count(tally.ExitLost) != 1 || a.Tally.Count(tally.OpenAtEnd) != 0 {
		t.Errorf("%d calls, %d exits lost, %d open", a.Totals.Calls, a.Tally.Count(tally.ExitLost), a.Tally.Count(tally.OpenAtEnd))
	}
}

func TestNearlyEqualLongTimesAreJudged(t *testing.T) {
	for _, algorithm := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD, outlier.COPOD} {
		p := newProgram()
		for i := range 100 {
			p.call(2, 100_000_000+uint64(i%2))
		}
		a := analyze(t, p.write(t), func(c *analyzer.Config) { c.Outlier.Algorithm = algorithm })
		if a.Review.Anomalies != 0 || a.Review.NotJudged != 0 {
			t.Errorf("%s: %d anomalies, %d not judged, want none", algorithm, a.Review.Anomalies, a.Review.NotJudged)
		}
	}
}

func TestFirstStepOfDistinctTimesFlagsFewCalls(t *testing.T) {
	// copod flags the ends of every distribution by design.
	for algorithm, most := range map[outlier.Algorithm]int64{outlier.HBOS: 1, outlier.SSTD: 0, outlier.COPOD: 6} {
		r := rand.New(rand.NewPCG(1, 1))
		p := newProgram()
		for range 20 {
			p.call(2, uint64(1000+50*r.NormFloat64()))
		}
		p.step()
		for range 40 {
			p.call(2, uint64(1000+50*r.NormFloat64()))
		}
		a := analyze(t, p.write(t), func(c *analyzer.Config) { c.Outlier.Algorithm, c.Review = algorithm, false })
		if a.Totals.Flagged > most {
			t.Errorf("%s flags %d of 60 normal calls; the original's hbos flags all of the first 20", algorithm, a.Totals.Flagged)
		}
	}
}

func TestExtremeTimeDoesNotHideOutliers(t *testing.T) {
	for _, algorithm := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD, outlier.COPOD} {
		r := rand.New(rand.NewPCG(2, 2))
		p := newProgram()
		for step := range 50 {
			for range 100 {
				p.call(2, uint64(1000+50*r.NormFloat64()))
			}
			if step == 5 {
				p.call(2, 1e7)
			}
			if step > 5 && step%5 == 0 {
				p.call(2, 3000+60*uint64(step)) // forty standard deviations and more
			}
			p.step()
		}
		a := analyze(t, p.write(t), func(c *analyzer.Config) { c.Outlier.Algorithm = algorithm })
		found := 0
		for _, rec := range a.records(t, "anomalies") {
			if rec.Status != provenance.Withdrawn && rec.RuntimeExclusive > 2900 {
				found++
			}
		}
		if found < 9 { // the one of 1e7, and eight after it
			t.Errorf("%s finds %d of 9 after one of 1e7, the original none", algorithm, found)
		}
	}
}

func TestResultsDoNotDependOnStepSize(t *testing.T) {
	found := func(calls int) map[string]bool {
		r := rand.New(rand.NewPCG(3, 3))
		p := newProgram()
		for i := range 3000 {
			if i%calls == 0 && i > 0 {
				p.step()
			}
			micros := uint64(1000 + 50*r.NormFloat64())
			if i%500 == 250 {
				micros = 5000 + uint64(i)
			}
			p.call(2, micros)
		}
		a := analyze(t, p.write(t), nil)
		ids := make(map[string]bool) // by time: steps differ
		for _, rec := range a.records(t, "anomalies") {
			if rec.Status != provenance.Withdrawn {
				ids[fmt.Sprint(rec.Entry)] = true
			}
		}
		return ids
	}
	want := found(3000)
	if len(want) < 6 {
		t.Fatalf("only %d found", len(want))
	}
	for _, calls := range []int{20, 100, 777} {
		if got := found(calls); len(got) != len(want) || !slices.Equal(sortedKeys(got), sortedKeys(want)) {
			t.Errorf("steps of %d calls: %d found, in one step %d", calls, len(got), len(want))
		}
	}
}

func sortedKeys(m map[string]bool) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestMetadataAreStoredOnceAndInFull(t *testing.T) {
	p := newProgram()
	p.call(2, 100)
	p.step()
	p.at().Attrs = [][2]string{{"MetaData:0:0:late", "fact"}}
	p.step() // nothing completes here
	p.enter(1)
	a := analyze(t, p.write(t), nil)
	var got []string
	for _, r := range readMetadata(t, a) {
		got = append(got, r.Descr+"="+r.Value)
	}
	if want := "Hostname=node7 my timer resolution=1 late=fact"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestLateNamesAreResolved(t *testing.T) {
	p := newProgram()
	for range 40 {
		p.call(9, 100)
	}
	p.step()
	p.at().Attrs = [][2]string{{"timer 9", "late()"}}
	for range 40 {
		p.call(9, 100)
	}
	p.call(9, 9000)
	a := analyze(t, p.write(t), nil)
	names := make(map[string]uint64)
	for _, f := range a.Functions {
		names[f.Name] = f.Exclusive.Count()
	}
	if names["late()"] != 81 || len(names) != 1 || a.Review.Anomalies != 1 {
		t.Errorf("functions %v, %d anomalies, want 81 calls of late() and one", names, a.Review.Anomalies)
	}
}

func TestWindowSpansAdjacentSteps(t *testing.T) {
	p := newProgram()
	for range 60 {
		p.call(2, 100)
	}
	p.step()
	p.call(2, 9000) // alone in its step
	odd := p.now
	p.step()
	for range 60 {
		p.call(2, 100)
	}
	a := analyze(t, p.write(t), nil)
	all := a.records(t, "anomalies")
	if len(all) != 1 || uint64(all[0].Exit) != odd || all[0].IOStep != 1 {
		t.Fatalf("%d anomalies", len(all))
	}
	window := all[0].EventWindow.Execs
	if len(window) != 21 || window[10].EventID != all[0].EventID {
		t.Fatalf("the window has %d calls", len(window))
	}
	if !slices.IsSortedFunc(window, func(a, b provenance.WindowEntry) int { return int(a.Entry - b.Entry) }) {
		t.Error("the window is not in order of entry")
	}
	if window[20].EventID != "0:2:18" || window[0].EventID != "0:0:100" {
		t.Errorf("the window goes from %s to %s", window[0].EventID, window[20].EventID)
	}
}

func TestHeldCallsAreJudgedWithEnoughSamples(t *testing.T) {
	p := newProgram()
	for range 20 {
		p.call(2, 100)
	}
	p.call(2, 9000) // the 21st of 30 that must be known
	p.step()
	p.call(2, 100)
	p.step()
	for range 40 {
		p.call(2, 100)
	}
	p.step()
	p.call(2, 100)
	a := analyze(t, p.write(t), nil)
	all := a.records(t, "anomalies")
	if len(all) != 1 || all[0].EventID != "0:0:40" || all[0].IOStep != 0 || all[0].Status != provenance.Confirmed ||
		!all[0].CallStack[0].IsAnomaly {
		t.Fatalf("%d anomalies: %+v", len(all), all)
	}
	if a.Totals.Flagged != 1 || a.Review.NotJudged != 0 || a.Review.Typical != 1 {
		t.Errorf("%d flagged, %d not judged, %d typical, want 1, 0 and 1", a.Totals.Flagged, a.Review.NotJudged, a.Review.Typical)
	}
}

func TestRepeatedAnomalyIsFound(t *testing.T) {
	for _, algorithm := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD} {
		r := rand.New(rand.NewPCG(4, 4))
		p := newProgram()
		const times = 42
		for i := range 50 {
			for range 200 {
				p.call(2, uint64(1000+50*r.NormFloat64()))
			}
			if i < times {
				p.call(2, 3000)
			}
			p.step()
		}
		a := analyze(t, p.write(t), func(c *analyzer.Config) { c.Outlier.Algorithm = algorithm })
		found := 0
		for _, rec := range a.records(t, "anomalies") {
			if rec.Status != provenance.Withdrawn && rec.RuntimeExclusive == 3000 {
				found++
			}
		}
		if found != times {
			t.Errorf("%s finds %d of %d, the original's hbos 1", algorithm, found, times)
		}
	}
}

func TestUncoupledFunctionsLaunchNothing(t *testing.T) {
	a := analyze(t, tracetest.Recorded(t, "gpu-BP5"), func(c *analyzer.Config) { c.IgnoreCorrelation = []string{"cudaLaunch*"} })
	orphans := 0
	for _, r := range a.records(t, "anomalies") {
		if why, ok := r.GPUParent.(string); ok && strings.HasPrefix(why, "Chimbuko error: ") && strings.Contains(r.Func, "_kernel(") {
			orphans++
		}
	}
	if n := a.Tally.Count(tally.CorrelationUnmatched); n != 1200 || orphans == 0 {
		t.Errorf("%d kernels without a launch, want 1200; %d records report it", n, orphans)
	}
}

// In a file that several ranks share, metadata come in any order.
func TestMetadataOfSharedFileAreStored(t *testing.T) {
	for run, want := range map[string]int{"ring-onefile-BP4": 158, "ring-onefile-BP5": 158} {
		if got := len(readMetadata(t, analyze(t, tracetest.Recorded(t, run), nil))); got != want {
			t.Errorf("%s: %d metadata are stored, want %d", run, got, want)
		}
	}
}

// A rank may end with held calls before other ranks provide enough samples.
func TestHeldCallsOfEndedRankAreJudged(t *testing.T) {
	short, long := newProgram(), newProgram()
	for range 160 {
		short.call(2, 100)
	}
	short.call(2, 9000)
	short.call(3, 8000) // the first of its function
	short.step()
	for range 60 {
		short.call(2, 100)
	}
	short.call(2, 7000)
	for range 3 {
		for range 60 {
			long.call(2, 100)
			long.call(3, 100)
		}
		long.step()
	}
	long.setRank(1)
	a := analyze(t, []string{long.writeAs(t, "app-1.bp"), short.writeAs(t, "app-0.bp")},
		func(c *analyzer.Config) { c.Outlier.MinSamples, c.SkipFirst = 150, false })
	var got []string
	for _, r := range a.records(t, "anomalies") {
		got = append(got, fmt.Sprintf("%s %s %d", r.Func, r.Status, r.RuntimeExclusive))
	}
	slices.Sort(got)
	if want := "other promoted 8000, work confirmed 7000, work confirmed 9000"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// Ranks start at different times and wait for each other until the first collective
// call. Without one, the number of excluded waits is limited.
func TestWaitsBeforeFirstCollectiveAreExcluded(t *testing.T) {
	const wait, meet, waits = 4, 5, 40
	f := func(met, cut int, change func(*analyzer.Config), want uint64) {
		t.Helper()
		p := newProgram()
		p.at().Attrs = append(p.at().Attrs, [2]string{"timer 4", "MPI_Waitall()"}, [2]string{"timer 5", "MPI_Barrier()"})
		for i := range waits {
			if i == met {
				p.call(meet, 10)
			}
			p.call(wait, 100)
			if i%cut == cut-1 {
				p.step()
			}
		}
		a := analyze(t, p.write(t), change)
		i := slices.IndexFunc(a.Functions, func(f *summary.FunctionResult) bool { return f.Name == "MPI_Waitall()" })
		if got := a.learned(i).Count(); got != want {
			t.Errorf("all ranks met before wait %d, steps of %d waits: %d of %d waits count, want %d", met, cut, got, waits, want)
		}
	}
	for _, cut := range []int{1, 7, 100} {
		f(0, cut, nil, waits-1) // the first call of each function is left out
		f(1, cut, nil, waits-1)
		f(10, cut, nil, waits-10)
		f(30, cut, nil, waits-16)
		f(waits, cut, nil, waits-16)
	}
	f(10, 7, func(c *analyzer.Config) { c.SkipFirst = false }, waits)
	f(10, 7, func(c *analyzer.Config) { c.Outlier.IncludeSelf = true }, waits-1) // as the original
}

// setRank changes the rank of all events so far.
func (p *program) setRank(rank uint64) {
	for i := range p.steps {
		s := &p.steps[i]
		for j := range s.Funcs {
			s.Funcs[j][1] = rank
		}
		for j := range s.Attrs {
			s.Attrs[j][0] = strings.Replace(s.Attrs[j][0], "MetaData:0:", fmt.Sprintf("MetaData:%d:", rank), 1)
		}
	}
}

// writeAs writes the trace to a dataset of that name.
func (p *program) writeAs(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Rename(p.write(t)[0], path); err != nil {
		t.Fatal(err)
	}
	return path
}

// With models of single ranks the run-level models still cover all ranks.
func TestRankModelsAddUpToProgramModel(t *testing.T) {
	datasets := tracetest.Recorded(t, "gpu-BP5")
	common := analyze(t, datasets, nil)
	own := analyze(t, datasets, func(c *analyzer.Config) { c.RankScope = true })
	for i, f := range own.Functions {
		want := common.Functions[i]
		if own.learned(i).Count() != common.learned(i).Count() || f.Typical != want.Typical {
			t.Fatalf("%s: %d calls learned, typically %v, want %d and %v", f.Name, own.learned(i).Count(), f.Typical, common.learned(i).Count(),
				want.Typical)
		}
		if f.LostTime != want.LostTime { // there is one rank
			t.Errorf("%s lost %d, want %d", f.Name, f.LostTime, want.LostTime)
		}
	}
	cfg := analyzer.Default()
	cfg.InitialModels, cfg.RankScope = common.Models, true
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "covers all ranks") {
		t.Errorf("a loaded model with models for each rank: got %v", err)
	}
}
