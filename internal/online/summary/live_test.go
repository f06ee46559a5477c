package summary_test

import (
	"math"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

func TestFunctionsAreSortedByID(t *testing.T) {
	l := packettest.SmallRun()
	packettest.AddFunction(l, packettest.Function(4, 7, "another name", 1), packettest.Sums())
	var ids []int
	for _, f := range l.Functions() {
		ids = append(ids, f.ID)
	}
	if !slices.Equal(ids, []int{0, 4, 9}) {
		t.Errorf("got functions %v, want 0, 4, 9", ids)
	}
	f := l.Functions()[1]
	if f.Program != 0 || f.Name != "solve<double>" || f.Exclusive != *packettest.Sums(100, 110, 90, 5000, 1) ||
		f.Inclusive != *packettest.Sums(110, 120, 100, 5010, 11) {
		t.Errorf("got %+v, want all calls under the first name", f)
	}
}

func TestCountersAreSortedByProgramAndName(t *testing.T) {
	l := packettest.SmallRun()
	packettest.AddCounter(l, 0, "A", packettest.Sums(1))
	packettest.AddCounter(l, 0, "Bytes Sent", packettest.Sums(2))
	want := []summary.Counter{
		{trace.FuncKey{Program: 0, Name: "A"}, *packettest.Sums(1)},
		{trace.FuncKey{Program: 0, Name: "Bytes Sent"}, *packettest.Sums(8, 16, 4096, 2)},
		{trace.FuncKey{Program: 1, Name: "pages swapped"}, *packettest.Sums(0, 0)},
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
	if got := packettest.SmallRun().Ranks(); !slices.Equal(got, want) {
		t.Errorf("got %+v,\nwant %+v", got, want)
	}
}

func TestOnlyAdditionsWithContentAreNews(t *testing.T) {
	l := packettest.SmallRun()
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
	f("no calls of a known function", false, func() { packettest.AddFunction(l, packettest.Function(4, 0, ""), packettest.Sums()) })
	f("no calls of a new function", true, func() { packettest.AddFunction(l, packettest.Function(5, 0, "new"), packettest.Sums()) })
	f("calls", true, func() { packettest.AddFunction(l, packettest.Function(4, 0, "", 5), packettest.Sums()) })
	f("a step without anomalies of a function", true, func() { packettest.AddFunction(l, packettest.Function(4, 0, ""), packettest.Sums(0)) })
	f("no steps", false, func() { l.AddRank(trace.RankKey{Program: 0, Rank: 3}, packettest.Sums()) })
	f("a step without anomalies", true, func() { l.AddRank(trace.RankKey{Program: 0, Rank: 3}, packettest.Sums(0)) })
	f("a report of a step without anomalies", false, func() { l.AddStep(&summary.StepReport{RankKey: trace.RankKey{Rank: 3}}) })
	f("a report whose count is not a number", false, func() { l.AddStep(&summary.StepReport{Scores: stats.RunStats{N: math.NaN()}}) })
	f("a report of anomalies", true, func() { l.AddStep(&summary.StepReport{RankKey: trace.RankKey{Rank: 3}, Scores: packettest.Scores(1)}) })
	f("no values of a counter", false, func() { packettest.AddCounter(l, 0, "Bytes Sent", packettest.Sums()) })
	f("values of a counter", true, func() { packettest.AddCounter(l, 0, "Bytes Sent", packettest.Sums(0)) })
}

func TestAddingToKnownKeysDoesNotAllocate(t *testing.T) {
	l := packettest.SmallRun()
	f, anomalies, values := packettest.Function(4, 0, "solve<double>", 7, 8), packettest.Sums(0, 1), packettest.Sums(3)
	r := &summary.StepReport{
		RankKey: trace.RankKey{Rank: 3}, Step: 5, Scores: packettest.Scores(1),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: packettest.Anomaly(5, 1, 2, 1)}},
	}
	add := func() {
		packettest.AddFunction(l, f, anomalies)
		l.AddRank(trace.RankKey{Program: 0, Rank: 3}, anomalies)
		l.AddStep(r)
		packettest.AddCounter(l, 0, "Bytes Sent", values)
	}
	for range 2000 {
		add() // makes room for the news of the runs below
	}
	l.Discard()
	if n := testing.AllocsPerRun(1000, add); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
