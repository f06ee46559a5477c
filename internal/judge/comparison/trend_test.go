package comparison_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// nights returns runs, one per night, in which solve takes and loses these times in
// milliseconds in 100 calls, and main takes 10 s.
func nights(times, lost []int64) []*comparison.Sums {
	var runs []*comparison.Sums
	for i := range max(len(times), len(lost)) {
		r := &comparison.Sums{Comparable: api.Comparable{
			Name: fmt.Sprint("night", i+1), Started: time.Unix(1_700_000_000+int64(i)*86400, 0),
		}}
		r.Add(&comparison.Function{Name: "main", Calls: 1, Exclusive: 10e6})
		f := comparison.Function{Name: "solve()", Calls: 100, Exclusive: 1e6}
		if times != nil {
			f.Exclusive = 1000 * float64(times[i])
		}
		if lost != nil && lost[i] > 0 {
			f.Anomalies, f.Lost = 3, 1000*float64(lost[i])
		}
		if f.Exclusive == 0 {
			f.Calls = 0
		}
		r.Add(&f)
		runs = append(runs, r)
	}
	return runs
}

func TestTrendVerdict(t *testing.T) {
	f := func(runs []*comparison.Sums, level api.Level, want string) {
		t.Helper()
		got := comparison.Over(runs, nil, 12).Verdict
		if got.Sentence != want || got.Level != level {
			t.Errorf("\n got %s: %s\nwant %s: %s", got.Level, got.Sentence, level, want)
		}
	}
	// As in Diff, more work is not worse.
	const bad, good, unknown = api.LevelBad, api.LevelGood, api.LevelUnknown
	same := "The newest of %d runs is like those before it: no function differs by 1 %% of all time, or by 0.1 %% in the time " +
		"it lost to anomalies."
	ms := func(list ...int64) []int64 { return list }
	f(nights(ms(1000, 1010, 2100, 2100, 2090), nil), bad, "solve is 2.1 × slower since night3: 20.9 ms per call instead of 10.0 ms.")
	f(nights(ms(1000, 1010, 2100, 1800, 2400), nil), bad, "solve is 2.4 × slower since night3: 24.0 ms per call instead of 10.0 ms.")
	// drift
	f(nights(ms(1000, 1050, 1100, 1150, 1200, 2000), nil), bad, "solve is 2.0 × slower since night4: 20.0 ms per call instead of 10.0 ms.")
	// not 2 × faster since night2
	f(nights(ms(4000, 1000, 1000, 2000), nil), bad, "solve is 2.0 × slower since night4: 20.0 ms per call instead of 10.0 ms.")
	f(nights(ms(4000, 4000, 1000), nil), good, "solve is 4.0 × faster since night3: 10.0 ms per call instead of 40.0 ms.")
	f(nights(ms(0, 0, 1000, 1000), nil), good, "solve is new since night3 and takes 1.00 s.")
	f(nights(ms(1000, 1000, 0), nil), good, "solve is gone since night3 and took 1.00 s in night2.")
	f(nights(ms(1000, 1020, 1090), nil), good, fmt.Sprintf(same, 3))
	f(nights(ms(100, 100, 190), nil), good, fmt.Sprintf(same, 3)) // twice as slow, but negligible
	f(nights(ms(1000), nil), unknown, "At least two finished runs are needed to see a change.")
	f(nil, unknown, "At least two finished runs are needed to see a change.")

	f(nights(nil, ms(0, 0, 200, 220)), bad, "solve loses 220 ms to anomalies since night3, and nothing in night2.")
	f(nights(nil, ms(100, 100, 400)), bad, "solve loses 400 ms to anomalies since night3 instead of 100 ms.")
	f(nights(nil, ms(100, 0)), good, "solve loses nothing to anomalies since night2, and 100 ms in night1.")
	f(nights(ms(1000, 2000, 2000), ms(0, 0, 300)), bad, "solve is 2.0 × slower since night2: 20.0 ms per call instead of 10.0 ms. solve "+
		"loses 300 ms to anomalies since night3, and nothing in night2.")

	more := nights(ms(1000, 1000, 1000), nil)
	more[2].Add(&comparison.Function{Name: "solve()", Calls: 100, Exclusive: 1e6})
	f(more, good, "solve takes 2.00 s since night3 instead of 1.00 s, in 200 calls instead of 100.")
	several := nights(ms(1000, 3000, 3000), nil)
	for i, r := range several {
		for _, name := range []string{"pack", "send", "wait", "read", "calm"} {
			g := comparison.Function{Program: 1, Name: name, Calls: 10, Exclusive: 1e6}
			if i > 0 && name != "calm" {
				g.Exclusive = 2e6
			}
			r.Add(&g)
		}
	}
	f(several, bad, "solve is 3.0 × slower since night2: 30.0 ms per call instead of 10.0 ms. Since then also: pack, read, 2 more functions.")
}

func TestTrendListsTotalsAndLargestChanges(t *testing.T) {
	runs := nights([]int64{1000, 1000, 2000}, []int64{0, 50, 70})
	runs[1].Add(&comparison.Function{Program: 7, Name: "other", Exclusive: 5e5})
	all := comparison.Over(runs, nil, 12)
	if len(all.Runs) != 3 || all.Runs[2].Exclusive != 12e6 || all.Runs[2].Lost != 70_000 || all.Runs[2].Anomalies != 3 ||
		all.Runs[2].Calls != 101 || all.Runs[2].LostPercent != 100*0.07/12 {
		t.Errorf("%+v", all.Runs)
	}
	if names := []string{all.Time[0].Function, all.Time[1].Function, all.Time[2].Function}; len(all.Time) != 3 ||
		!slices.Equal(names, []string{"", "solve()", "other"}) || len(all.Lost) != 2 {
		t.Fatalf("%+v, %+v", all.Time, all.Lost)
	}
	if s := all.Time[0]; *s.Values[2] != 12e6 || s.Counts[2] != 101 || s.Since != nil || *all.Lost[0].Values[2] != 70_000 ||
		all.Lost[0].Since.Change != comparison.New {
		t.Errorf("all functions: %+v, %+v", s, all.Lost[0])
	}
	if v := all.Time[2].Values; *v[0] != 0 || *v[1] != 5e5 || *v[2] != 0 {
		t.Errorf("a function without calls takes time: %v", v)
	}
	if s := all.Lost[1].Since; *s != (api.TrendSince{Run: 1, Before: 0, Change: comparison.New}) {
		t.Errorf("%+v", s)
	}
	if one := comparison.Over(runs, nil, 1); len(one.Time) != 2 || one.Time[1].Function != "solve()" {
		t.Errorf("%+v", one.Time)
	}
	program := trace.Program(7)
	if only := comparison.Over(runs, &program, 12); len(only.Time) != 1 || only.Runs[1].Exclusive != 5e5 || only.Runs[2].Exclusive != 0 {
		t.Errorf("%+v", only)
	}
}

func TestTrendSkipsRunsWithUnknownTimes(t *testing.T) {
	runs := nights([]int64{1000, 1000, 2000}, []int64{10, 10, 10})
	unknown := &comparison.Sums{Comparable: api.Comparable{Name: "unknown"}}
	unknown.Add(&comparison.Function{Name: "solve()", Anomalies: 3, Lost: 10_000})
	runs = slices.Insert(runs, 1, unknown)
	got := comparison.Over(runs, nil, 12)
	if s := got.Time[1]; s.Values[1] != nil || got.Time[0].Values[1] != nil || s.Since.Run != 3 || s.Since.Before != 2 {
		t.Errorf("%+v, %+v", s, s.Since)
	}
	if got = comparison.Over([]*comparison.Sums{runs[0], unknown}, nil, 12); slices.ContainsFunc(got.Time,
		func(s api.TrendSeries) bool { return s.Since != nil }) {
		t.Errorf("%+v", got.Time)
	}
}

func TestChooseMergesRunAndBaseline(t *testing.T) {
	at := func(day int) time.Time { return time.Unix(1_700_000_000+int64(day)*86400, 123_456_789) }
	all := []api.Comparable{
		{Name: "c", State: "finished", Started: at(3), Baseline: true},
		{Name: "b", State: "finished", Started: at(2)},
		{Name: "c", State: "finished", Started: at(3).Truncate(time.Microsecond)},
		{Name: "a", State: "finished", Started: at(1), Baseline: true},
		{Name: "d", State: "running", Started: at(4)},
		{Name: "b", State: "finished", Started: at(2)}, // a copy
		{Name: "b", State: "finished", Started: at(7)}, // another run of that name
		{Name: "e", State: "failed", Started: at(5)},
	}
	choose := func(runs []api.Comparable) (indices []int, left comparison.LeftOut) {
		for i := range runs {
			indices = append(indices, i)
		}
		indices = comparison.Choose(indices, func(i int) api.Comparable { return runs[i] }, &left)
		return indices, left
	}
	if got, left := choose(all); !slices.Equal(got, []int{3, 1, 2, 6}) || left != (comparison.LeftOut{Unfinished: 2}) {
		t.Errorf("%v, %+v", got, left)
	}
	var many []api.Comparable
	for i := range comparison.MaxTrend + 3 {
		many = append(many, api.Comparable{Name: fmt.Sprint(i), State: "finished", Started: at(-i)})
	}
	if got, left := choose(many); len(got) != comparison.MaxTrend || got[0] != comparison.MaxTrend-1 || got[len(got)-1] != 0 ||
		left.Older != 3 {
		t.Errorf("%v, %+v", got, left)
	}
}

func TestTrendAgreesWithDiff(t *testing.T) {
	a, b := someRun(), someRun()
	b.Paths[1].Lost, b.Functions[1].Exclusive = 900_000, 5e6
	d := comparison.Diff(a, b, nil)
	got := comparison.Over([]*comparison.Sums{a.Sums(), b.Sums()}, nil, 12)
	for i, r := range got.Runs {
		if r.Lost != d.Lost[i] || r.Exclusive != d.Exclusive[i] || r.Calls != d.Calls[i] || r.Anomalies != d.Anomalies[i] ||
			r.LostPercent != d.LostPercent[i] {
			t.Errorf("%+v, want %+v", r, d)
		}
	}
	f := d.Functions[0]
	if s := got.Time[1]; s.Function != f.Function || *s.Values[0] != f.Exclusive[0] || *s.Values[1] != f.Exclusive[1] ||
		s.Since.Change != f.Kind {
		t.Errorf("%+v, want %+v", s, f)
	}
	if s := got.Lost[1]; *s.Values[1] != float64(f.Lost[1]) || s.Since.Change != d.Changes[0].Kind {
		t.Errorf("%+v", s)
	}
}

func TestAllRunsSinceChangeDiffer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 2000 {
		times := make([]int64, 2+random.IntN(8))
		for i := range times {
			times[i] = int64(random.IntN(4)) * 800
		}
		got := comparison.Over(nights(times, nil), nil, 12)
		for _, s := range got.Time[1:] {
			if s.Since == nil {
				continue
			}
			kinds := make([]string, len(times))
			for i := range times {
				d := comparison.Diff(runOf(times[s.Since.Before]), runOf(times[i]), nil)
				if kinds[i] = comparison.Same; len(d.Functions) > 0 {
					kinds[i] = d.Functions[0].Kind
				}
			}
			up := func(kind string) bool { return kind == comparison.Worse || kind == comparison.New }
			for i := s.Since.Run; i < len(times); i++ {
				if times[i] == times[s.Since.Before] || up(kinds[i]) != up(s.Since.Change) {
					t.Fatalf("%v: since %+v, but then %v", times, s.Since, kinds)
				}
			}
			if i := s.Since.Run - 1; i > s.Since.Before && times[i] != times[s.Since.Before] && up(kinds[i]) == up(s.Since.Change) {
				t.Fatalf("%v: since %+v, but already before: %v", times, s.Since, kinds)
			}
			if kinds[len(times)-1] != s.Since.Change {
				t.Fatalf("%v: %+v, but Diff says %v", times, s.Since, kinds)
			}
		}
		differ := slices.ContainsFunc(times, func(v int64) bool { return v != times[len(times)-1] })
		if changed := len(got.Time) > 1 && got.Time[1].Since != nil; changed != differ {
			t.Fatalf("%v: %+v", times, got.Time)
		}
	}
}

// runOf returns a run in which solve takes that many milliseconds, or is not called.
func runOf(ms int64) *comparison.Run {
	r := new(comparison.Run)
	if ms > 0 {
		r.Functions = []comparison.Function{{Name: "solve()", Calls: 100, Exclusive: 1000 * float64(ms)}}
	}
	return r
}

func TestTrendVerdictEscapesNames(t *testing.T) {
	runs := nights([]int64{1000, 3000}, nil)
	runs[1].Name = "night\n2\x1b[31m" + strings.Repeat("x", 500)
	if text := comparison.Over(runs, nil, 12).Verdict.Sentence; strings.ContainsAny(text, "\n\x1b") || len(text) > 400 {
		t.Errorf("%q", text)
	}
}

func TestTrendWarnsAboutAnotherProgram(t *testing.T) {
	runs := nights([]int64{1000, 1010, 1020}, nil)
	if n := comparison.Over(runs, nil, 12).Notices; len(n) != 0 {
		t.Errorf("runs of one program: %+v", n)
	}
	stranger := &comparison.Sums{Comparable: api.Comparable{Name: "weather"}}
	for _, name := range []string{"main", "MPI_Barrier()", "advect", "radiate"} {
		stranger.Add(&comparison.Function{Name: name, Calls: 10, Exclusive: 1e6})
	}
	n := comparison.Over(append([]*comparison.Sums{stranger}, runs...), nil, 12).Notices
	if want := "weather seems to be a run of another program: 0 of its 2 functions occur in night3"; len(n) != 1 || n[0].Sentence != want {
		t.Errorf("got %+v, want %q", n, want)
	}
}
