package provenance_test

import (
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/sample"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestRecordExplainsAnomaly(t *testing.T) {
	f := func(d outlier.Description, s provenance.Status, total trace.Ticks, want string) {
		t.Helper()
		r := &provenance.Record{RuntimeExclusive: trace.Ticks(d.Time), RuntimeTotal: total}
		if r.Explain(&d, s); r.Why != want || r.Status != s {
			t.Errorf("%+v, %s:\n got %s (%s)\nwant %s", d, s, r.Why, r.Status, want)
		}
	}
	usual := func(ranges ...outlier.Range) []outlier.Range { return ranges }
	slow := outlier.Description{
		Time: 4063, Count: 3_072_000, Median: 2, Usual: usual(outlier.Range{Low: 2, High: 31}), Side: outlier.Above, Alike: 1, Decades: 5,
	}
	const begin = "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls); 1 of 3,072,000 calls was this slow"
	f(slow, provenance.Confirmed, 4063, begin+"; flagged during the run and confirmed at the end")
	f(slow, provenance.Promoted, 4063, begin+"; found only at the end, by the final model")
	f(slow, provenance.Withdrawn, 4063, begin+"; flagged during the run, but withdrawn at the end by the final model")
	f(slow, provenance.Provisional, 4063, begin+"; flagged so far, the run continues")
	f(slow, "", 4063, begin)
	f(slow, "", 5000, "took 4.06 ms of own time"+begin[len("took 4.06 ms"):])

	onPath := slow
	onPath.OnPath = true
	f(onPath, "", 4063, "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls on this call path); "+
		"1 of 3,072,000 calls was this slow")

	// The expected share is given if it is smaller than the observed one.
	again := slow
	again.Alike = 20_000
	f(again, "", 4063, "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls); 20,000 of 3,072,000 calls were this slow; "+
		"normal variation would give at most 31")
	again.Alike, again.Decades = 30, 5
	f(again, "", 4063, "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls); 30 of 3,072,000 calls were this slow")
	again.Alike, again.Decades = 31, 9
	f(again, "", 4063, "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls); 31 of 3,072,000 calls were this slow; "+
		"normal variation would give none")
	again.Alike = 0
	f(again, "", 4063, "took 4.06 ms, usually 2 us to 31 us (median 2 us over 3,072,000 calls); none of 3,072,000 calls was this slow")

	fast := outlier.Description{
		Time: 5, Count: 1000, Median: 115, Usual: usual(outlier.Range{Low: 115, High: 115}), Side: outlier.Below,
		Alike: 3,
	}
	f(fast, "", 5, "took 5 us, usually 115 us (median 115 us over 1,000 calls); 3 of 1,000 calls were this fast")
	between := outlier.Description{
		Time: 1_250_000, Count: 20_000, Median: 511_300, Alike: 2,
		Usual: usual(outlier.Range{Low: 420_000, High: 575_000}, outlier.Range{Low: 1_790_000, High: 2_170_000}),
	}
	f(between, "", 1_250_000, "took 1.25 s, usually 420 ms to 575 ms or 1.79 s to 2.17 s (median 511 ms over 20,000 calls); 2 of 20,000 calls "+
		"took about as long")
	between.Others, between.Count, between.Alike = 4, 1, 1
	f(between, "", 1_250_000, "took 1.25 s, usually 420 ms to 575 ms or 1.79 s to 2.17 s or in 4 other ranges (median 511 ms over 1 "+
		"call); 1 of 1 call took about as long")

	r := &provenance.Record{RuntimeExclusive: 12, RuntimeTotal: 4063} // judged by inclusive time
	r.Explain(&slow, "")
	if want := "took 4.06 ms with the calls inside it" + begin[len("took 4.06 ms"):]; r.Why != want {
		t.Errorf("got  %s\nwant %s", r.Why, want)
	}
}

func TestKindPrecedence(t *testing.T) {
	f := func(name string, gpu bool, v int64, want provenance.AnomalyKind) {
		t.Helper()
		r := &provenance.Record{Func: name, IsGPUEvent: gpu}
		d := outlier.Description{Time: v, Count: 1000, Median: 115, Usual: []outlier.Range{{Low: 100, High: 130}}}
		if r.Explain(&d, provenance.Confirmed); r.Kind != want {
			t.Errorf("%s on a GPU %t, %d us: got %q, want %q", name, gpu, v, r.Kind, want)
		}
	}
	f("compute()", false, 5000, provenance.Slow)
	f("compute()", false, 1, provenance.Fast)
	f("MPI_Waitall()", false, 5000, provenance.CommWait)
	f("MPI_Waitall()", false, 1, provenance.CommWait)
	f("cudaDeviceSynchronize", false, 5000, provenance.CommWait)
	f("compute_kernel(float*)", true, 5000, provenance.OnGPU)
	f("ncclDevKernel_AllReduce", true, 1, provenance.OnGPU)
	f("MPI_Send()", false, 5000, provenance.CommWait)
	f("MPI_Isend()", false, 5000, provenance.Slow)
}

func TestExcessWorkIsExplained(t *testing.T) {
	r := &provenance.Record{
		EventID: "0:1:7", RuntimeExclusive: 250, RuntimeTotal: 11_050, Children: 60, UsualChildren: 6,
		EventWindow: provenance.EventWindow{Execs: []provenance.WindowEntry{
			{StackEntry: provenance.StackEntry{Func: "before", EventID: "0:1:5"}, ParentID: "0:1:1"},
			{StackEntry: provenance.StackEntry{Func: "rebuild", EventID: "0:1:7"}, ParentID: "0:1:1"},
			{StackEntry: provenance.StackEntry{Func: "sort", EventID: "0:1:8"}, ParentID: "0:1:7"},
			{StackEntry: provenance.StackEntry{Func: "visit", EventID: "0:1:9"}, ParentID: "0:1:7"},
			{StackEntry: provenance.StackEntry{Func: "visit", EventID: "0:1:11"}, ParentID: "0:1:7"},
		}},
	}
	d := outlier.Description{Time: 250, Count: 1000, Median: 250, Usual: []outlier.Range{{Low: 200, High: 300}}}
	r.Explain(&d, provenance.Confirmed)
	want := "made 60 calls, such as visit, usually 6; these took 10.8 ms; took 250 us of own time, usually 200 us to 300 us (median 250 us " +
		"over 1,000 calls); flagged during the run and confirmed at the end"
	if r.Kind != provenance.TooManyCalls || r.Why != want {
		t.Errorf("got  %s: %s\nwant %s: %s", r.Kind, r.Why, provenance.TooManyCalls, want)
	}
}

// spread returns n evenly spaced times from low to high.
func spread(n int, low, high int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = low + (high-low)*int64(i)/int64(n-1)
	}
	return all
}

func TestDescriptionCountsLearnedCalls(t *testing.T) {
	main, second := spread(15_000, 450, 550), spread(5000, 1900, 2100)
	few := []int64{7, 1001, 1001, 1001, 40_000, 50_000}
	m := new(outlier.Model)
	for _, v := range slices.Concat(main, second, few) {
		m.Stats.Add(uint64(v))
		m.Hist.Add(v)
	}
	for _, a := range outlier.Algorithms() {
		cfg := outlier.Default()
		cfg.Algorithm = a
		j := outlier.NewRules(cfg).NewJudge("f", m)
		f := func(v int64, side outlier.Side, alike uint64) {
			t.Helper()
			d := j.Describe(v)
			if d.Time != max(v, 0) || d.Count != uint64(len(main)+len(second)+len(few)) || d.Median < 510 || d.Median > 520 {
				t.Errorf("%s: %d: %+v", a, v, d)
			}
			if d.Side != side || d.Alike != alike {
				t.Errorf("%s: %d: side %d with %d alike, want side %d with %d", a, v, d.Side, d.Alike, side, alike)
			}
			if (d.Decades > 0) != (a == outlier.Tail) || d.Decades > 9 {
				t.Errorf("%s: %d: %d decades", a, v, d.Decades)
			}
		}
		f(40_000, outlier.Above, 2)
		f(50_000, outlier.Above, 1)
		f(60_000, outlier.Above, 0)
		f(1001, outlier.Amid, 3)
		f(7, outlier.Below, 1)
		f(-3, outlier.Below, 0)

		var ranges int
		for i, r := range j.Describe(0).Usual {
			if r.Low > r.High || r.Low < 440 || r.High > 2200 || i > 0 && r.Low <= j.Describe(0).Usual[i-1].High {
				t.Errorf("%s: usual are %v", a, j.Describe(0).Usual)
			}
			ranges++
		}
		want := 1
		if a == outlier.Tail {
			want = 2
		}
		if ranges != want {
			t.Errorf("%s: %d usual ranges, want %d", a, ranges, want)
		}
	}
}

func TestWhyNamesMostFrequentRanges(t *testing.T) {
	m := new(outlier.Model)
	for _, v := range slices.Concat(
		spread(2300, 1000, 1004), spread(6000, 4000, 4060), spread(2000, 16_000, 16_100), spread(2400, 64_000, 64_300),
		spread(2200, 256_000, 257_000),
	) {
		m.Stats.Add(uint64(v))
		m.Hist.Add(v)
	}
	cfg := outlier.Default()
	cfg.Algorithm = outlier.Tail
	d := outlier.NewRules(cfg).NewJudge("f", m).Describe(5_000_000)
	if len(d.Usual) != 3 || d.Others != 2 {
		t.Fatalf("got %+v, want three ranges and two others", d)
	}
	for i, v := range []int64{1002, 4030, 64_100} {
		if r := d.Usual[i]; v < r.Low || v > r.High {
			t.Errorf("range %d is %v, without %d", i, r, v)
		}
	}
}

func TestRecordOfSampleStatesWhatItStandsFor(t *testing.T) {
	r := &provenance.Record{Why: "took 4.06 ms; flagged so far, the run continues"}
	before := r.Why
	var a sample.Alike
	for i := range uint64(12_345) {
		like, _ := a.Keep(1, 300, i)
		if r.StandsFor(like); i < sample.Few && r.Why != before {
			t.Fatalf("call %d: %s", i, r.Why)
		}
		if i < 12_344 {
			r.Why = before
		}
	}
	if want := before + "; stands for 12,345 calls of this rank that lost about as much, 3.70 s in total; until the run ends, " +
		"the store has a sample of them"; r.Why != want {
		t.Errorf("got  %s\nwant %s", r.Why, want)
	}
}
