package summary_test

import (
	"math"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

func sums(values ...uint64) *stats.Sums {
	s := new(stats.Sums)
	for _, v := range values {
		s.Add(v)
	}
	return s
}

func scores(values ...float64) (s stats.RunStats) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// anomaly returns the metrics of one anomaly in a step.
func anomaly(step int32, entry, exit trace.Micros, score float64) summary.Metrics {
	m := summary.Metrics{Count: *sums(1)}
	m.Add(step, entry, exit, score, exit-entry)
	return m
}

func function(id int, program trace.Program, name string, times ...uint64) *summary.FunctionStats {
	f := &summary.FunctionStats{ID: id, FuncKey: trace.FuncKey{Program: program, Name: name}, Exclusive: *sums(times...)}
	for _, v := range times {
		f.Inclusive.Add(v + 10)
	}
	return f
}

// smallRun is a run of two programs and three ranks, of which two have anomalies:
// some of them taken already, some not.
func smallRun() *summary.Live {
	l := summary.NewLive()
	addFunction(l, function(4, 0, "solve<double>", 100, 110, 90), sums(0, 1))
	addFunction(l, function(0, 0, `MPI_Send() [{a "quoted" name}]`, 7, 7), sums(1, 0))
	addFunction(l, function(9, 1, "write", 3_000_000), sums(0))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums(0, 2))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, sums(0, 0))
	l.AddRank(trace.RankKey{Program: 1, Rank: 0}, sums(0))
	addCounter(l, 0, "Bytes Sent", sums(8, 16, 4096))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 1, First: 1000, Last: 2000, Scores: scores(2.5, 12),
		Functions: []summary.FunctionStats{
			{ID: 4, Anomalies: anomaly(1, 1100, 1210, 12)},
			{ID: 0, Anomalies: anomaly(1, 1300, 1310, 2.5)},
		},
	})
	l.Discard()

	addFunction(l, function(4, 0, "solve<double>", 5000), sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, sums(1, 0))
	addCounter(l, 1, "pages swapped", sums(0, 0))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 12}, Step: 2, First: 2000, Last: 3000, Scores: scores(7),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: anomaly(2, 2100, 2900, 7)}},
	})
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 4, First: 4000, Last: 9500, Scores: scores(0.125),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: anomaly(4, 4100, 9400, 0.125)}},
	})
	return l
}

func TestFunctionsAreSortedByID(t *testing.T) {
	l := smallRun()
	addFunction(l, function(4, 7, "another name", 1), sums())
	var ids []int
	for _, f := range l.Functions() {
		ids = append(ids, f.ID)
	}
	if !slices.Equal(ids, []int{0, 4, 9}) {
		t.Errorf("got functions %v, want 0, 4, 9", ids)
	}
	f := l.Functions()[1]
	if f.Program != 0 || f.Name != "solve<double>" || f.Exclusive != *sums(100, 110, 90, 5000, 1) ||
		f.Inclusive != *sums(110, 120, 100, 5010, 11) {
		t.Errorf("got %+v, want all calls under the first name", f)
	}
}

func TestCountersAreSortedByProgramAndName(t *testing.T) {
	l := smallRun()
	addCounter(l, 0, "A", sums(1))
	addCounter(l, 0, "Bytes Sent", sums(2))
	want := []summary.Counter{
		{trace.FuncKey{Program: 0, Name: "A"}, *sums(1)},
		{trace.FuncKey{Program: 0, Name: "Bytes Sent"}, *sums(8, 16, 4096, 2)},
		{trace.FuncKey{Program: 1, Name: "pages swapped"}, *sums(0, 0)},
	}
	got := l.Counters()
	if !slices.EqualFunc(got, want, func(a *summary.Counter, b summary.Counter) bool { return *a == b }) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRankStatusHasAnomaliesAndLastStep(t *testing.T) {
	want := []summary.RankStatus{
		{RankKey: trace.RankKey{Program: 0, Rank: 3}, Steps: 3, Anomalies: 3, LastStep: 4, LastTime: 9400},
		{RankKey: trace.RankKey{Program: 0, Rank: 12}, Steps: 4, Anomalies: 1, LastStep: 2, LastTime: 2900},
		{RankKey: trace.RankKey{Program: 1, Rank: 0}, Steps: 1, LastStep: -1},
	}
	if got := smallRun().Ranks(); !slices.Equal(got, want) {
		t.Errorf("got %+v,\nwant %+v", got, want)
	}
}

func TestOnlyAdditionsWithContentAreNews(t *testing.T) {
	l := smallRun()
	f := func(what string, want bool, add func()) {
		t.Helper()
		l.Discard()
		add()
		if news := l.TakeNews(); news.Any != want {
			t.Errorf("%s: news %v, want %v", what, news.Any, want)
		}
		if news := l.TakeNews(); news.Any || news.Ranks != nil || news.Metrics != nil {
			t.Errorf("%s: news remain: %+v", what, news)
		}
	}
	f("nothing", false, func() {})
	f("no calls of a known function", false, func() { addFunction(l, function(4, 0, ""), sums()) })
	f("no calls of a new function", true, func() { addFunction(l, function(5, 0, "new"), sums()) })
	f("calls", true, func() { addFunction(l, function(4, 0, "", 5), sums()) })
	f("a step without anomalies of a function", true, func() { addFunction(l, function(4, 0, ""), sums(0)) })
	f("no steps", false, func() { l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums()) })
	f("a step without anomalies", true, func() { l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums(0)) })
	f("a report of a step without anomalies", false, func() { l.AddStep(&summary.StepReport{RankKey: trace.RankKey{Rank: 3}}) })
	f("a report whose count is not a number", false, func() { l.AddStep(&summary.StepReport{Scores: stats.RunStats{N: math.NaN()}}) })
	f("a report of anomalies", true, func() { l.AddStep(&summary.StepReport{RankKey: trace.RankKey{Rank: 3}, Scores: scores(1)}) })
	f("no values of a counter", false, func() { addCounter(l, 0, "Bytes Sent", sums()) })
	f("values of a counter", true, func() { addCounter(l, 0, "Bytes Sent", sums(0)) })
}

func TestAddingToKnownKeysDoesNotAllocate(t *testing.T) {
	l := smallRun()
	f, anomalies, values := function(4, 0, "solve<double>", 7, 8), sums(0, 1), sums(3)
	r := &summary.StepReport{
		RankKey: trace.RankKey{Rank: 3}, Step: 5, Scores: scores(1),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: anomaly(5, 1, 2, 1)}},
	}
	add := func() {
		addFunction(l, f, anomalies)
		l.AddRank(trace.RankKey{Program: 0, Rank: 3}, anomalies)
		l.AddStep(r)
		addCounter(l, 0, "Bytes Sent", values)
	}
	for range 2000 {
		add() // makes room for the news of the runs below
	}
	l.Discard()
	if n := testing.AllocsPerRun(1000, add); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// addFunction adds calls of a function with anomalies in each step.
func addFunction(l *summary.Live, f *summary.FunctionStats, anomalies *stats.Sums) {
	f.PerStep = *anomalies
	l.AddFunction(f)
}

func addCounter(l *summary.Live, program trace.Program, name string, values *stats.Sums) {
	l.AddCounter(&summary.Counter{FuncKey: trace.FuncKey{Program: program, Name: name}, Values: *values})
}
