package comparison_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// histogram returns a model with these counts of calls between edges.
func histogram(edges, counts []float64) json.RawMessage {
	text, err := json.Marshal(map[string]any{"histogram": map[string]any{"Histogram Bin Counts": counts, "Histogram Bin Edges": edges}})
	if err != nil {
		panic(err)
	}
	return text
}

// someRun returns a run that has a function with anomalies on two hosts, another without, and facts.
func someRun() *comparison.Run {
	r := &comparison.Run{
		Name: "run", State: "finished", Started: time.Unix(1_700_000_000, 0).UTC(), Version: "v1", Ranks: 4,
		Hosts:    []comparison.Host{{Host: "node00", Ranks: 2}, {Host: "node01", Ranks: 2}},
		Settings: map[string]string{"algorithm": "tail", "out": "run"},
		Functions: []comparison.Function{
			{Name: "main", Calls: 4, Exclusive: 1e6},
			{Name: "solve", Calls: 100, Exclusive: 2e6, Model: histogram([]float64{10, 20, 30}, []float64{60, 40})},
			{Name: "kernel", OnGPU: true, Calls: 10, Exclusive: 1e6},
		},
	}
	p := &r.Paths[r.Path(0, []string{"main", "solve"})]
	p.Calls, p.Exclusive, p.Anomalies, p.Lost = 100, 2_000_000, 5, 40_000
	p.Hosts = []comparison.HostLost{{Host: "node01", Lost: 30_000}, {Host: "node00", Lost: 10_000}}
	r.Fact(0, "CPU Type", "fast", 4, 1, 4)
	r.Fact(0, "Local Time", "noon", 3, 2, 4)
	r.Fact(0, "Local Time", "later", 1, 2, 4)
	return r
}

func TestDiffOfSameRunIsEmpty(t *testing.T) {
	d := comparison.Diff(someRun(), someRun(), nil)
	if len(d.Changes) != 1 || len(d.Functions) != 3 || d.Counts.Changes[comparison.Same] != 1 || *d.Functions[2].Distance != 0 ||
		*d.Functions[2].Moved != 0 {
		t.Errorf("%+v", d)
	}
	for _, f := range d.Metadata {
		if f.Kind != comparison.Same {
			t.Errorf("%+v", f)
		}
	}
	if want := "A and B lost about the same to anomalies, 40.0 ms and 40.0 ms, 1.0 % and 1.0 % of all time."; d.Verdict.Sentence != want ||
		d.Verdict.Level != api.LevelGood {
		t.Errorf("%+v, want %q", d.Verdict, want)
	}
}

func TestVerdictNamesLargestChange(t *testing.T) {
	f := func(change func(a, b *comparison.Run), level api.Level, want string) {
		t.Helper()
		a, b := someRun(), someRun()
		change(a, b)
		if got := comparison.Diff(a, b, nil).Verdict; got.Sentence != want || got.Level != level {
			t.Errorf("\n got %s: %s\nwant %s: %s", got.Level, got.Sentence, level, want)
		}
	}
	const bad, watch, good, unknown = api.LevelBad, api.LevelWatch, api.LevelGood, api.LevelUnknown
	more := func(_, b *comparison.Run) { b.Paths[1].Lost, b.Paths[1].Hosts[0].Lost = 140_000, 130_000 }
	f(more, bad, "B lost 100 ms more than A to anomalies (3.5 % of all time instead of 1.0 %): solve lost 100 ms more, mostly on node01.")
	f(func(a, b *comparison.Run) { more(b, a) }, good, "B lost 100 ms less than A to anomalies (1.0 % of all time instead of 3.5 %): "+
		"solve lost 100 ms less, mostly on node01.")
	f(func(a, b *comparison.Run) {
		a.Paths[1].Anomalies, a.Paths[1].Lost = 0, 0
		b.Paths[1].Hosts = b.Paths[1].Hosts[:1]
		b.Paths[1].Hosts[0].Lost = 40_000
	}, bad, "B lost 40.0 ms more than A to anomalies (1.0 % of all time instead of 0 %): solve is new with 40.0 ms, on node01. Of the "+
		"call paths with anomalies, 1 is new.")
	f(func(_, b *comparison.Run) {
		b.Paths[1].Anomalies, b.Paths[1].Lost = 0, 0
		b.Functions[1].Exclusive = 2.1e6
	}, watch, "All calls of B together took 100 ms longer than those of A (2.5 %), most of it in solve: 21.0 ms per call instead of 20.0 ms. "+
		"B lost 40.0 ms less than A to anomalies (0 % of all time instead of 1.0 %): solve is gone with 40.0 ms, mostly on node01. Of the "+
		"call paths with anomalies, 1 is gone.")
	f(func(a, b *comparison.Run) {
		for _, r := range []*comparison.Run{a, b} {
			r.Paths[1].Anomalies, r.Paths[1].Lost = 0, 0
		}
		b.Functions[1].Exclusive = 3e6
	}, bad, "All calls of B together took 1.00 s longer than those of A (25.0 %), most of it in solve: 30.0 ms per call instead of 20.0 "+
		"ms. Neither A nor B lost time to anomalies.")
	f(func(a, b *comparison.Run) {
		for _, r := range []*comparison.Run{a, b} {
			r.Paths[1].Anomalies, r.Paths[1].Lost = 0, 0
		}
		b.Functions[1].Exclusive, b.Functions[1].Calls = 2.1e6, 110
	}, watch, "All calls of B together took 100 ms longer than those of A (2.5 %), most of it in solve: 110 calls instead of 100. "+
		"Neither A nor B lost time to anomalies.")
	f(func(_, b *comparison.Run) {
		for i := range b.Functions {
			b.Functions[i].Calls *= 2
			b.Functions[i].Exclusive *= 2
		}
		b.Paths[1].Lost *= 2
	}, good, "All calls of B together took 4.00 s longer than those of A (100.0 %); B made 228 calls instead of 114. "+
		"B lost 40.0 ms more than A to anomalies (1.0 % of all time instead of 1.0 %): solve lost 40.0 ms more.")
	f(func(_, b *comparison.Run) { b.Functions = nil }, unknown, "A and B lost about the same to anomalies, 40.0 ms and 40.0 ms.")
	f(func(_, b *comparison.Run) { *b = comparison.Run{} }, unknown, "Nothing to compare: no data of B.")
	f(func(a, b *comparison.Run) { *a, *b = comparison.Run{}, comparison.Run{} }, unknown,
		"Nothing to compare: no data of A and B.")
}

func TestVerdictEscapesNames(t *testing.T) {
	a, b := someRun(), someRun()
	name := "evil\n\x1b[31m" + strings.Repeat("x", 500) + " [{a.c} {1,2}]"
	b.Functions = append(b.Functions, comparison.Function{Name: name, Calls: 1, Exclusive: 5e6})
	p := &b.Paths[b.Path(0, []string{name})]
	p.Anomalies, p.Lost, p.Hosts = 1, 1_000_000, []comparison.HostLost{{Host: "no\nde", Lost: 1_000_000}}
	text := comparison.Diff(a, b, nil).Verdict.Sentence
	if strings.ContainsAny(text, "\n\x1b") || len(text) > 600 {
		t.Errorf("%q", text)
	}
}

func TestDiffOfOneProgram(t *testing.T) {
	a, b := someRun(), someRun()
	b.Functions = append(b.Functions, comparison.Function{Program: 1, Name: "viz", Calls: 1, Exclusive: 5})
	b.Fact(1, "CPU Type", "slow", 1, 1, 1)
	d := comparison.Diff(a, b, new(trace.Program(1)))
	if len(d.Changes) != 0 || len(d.Functions) != 1 || d.Functions[0].Kind != comparison.New || d.Exclusive != [2]float64{0, 5} {
		t.Errorf("%+v", d)
	}
	facts := 0
	for _, f := range d.Metadata {
		if f.Section == "metadata" {
			facts++
		}
	}
	if facts != 1 {
		t.Errorf("%d facts of the program", facts)
	}
}

func TestMetadataMarksExpectedDifferences(t *testing.T) {
	a, b := someRun(), someRun()
	b.Hosts = []comparison.Host{{Host: "node00", Ranks: 1}, {Host: "node02", Ranks: 3}}
	b.Settings = map[string]string{"algorithm": "hbos", "out": "elsewhere"}
	b.Started = b.Started.Add(time.Hour)
	b.Facts = nil
	b.Fact(0, "CPU Type", "fast", 3, 2, 4)
	b.Fact(0, "CPU Type", "slow", 1, 2, 4)
	b.Fact(0, "Local Time", "evening", 4, 1, 4)
	b.Fact(0, "OMP_NUM_THREADS", "8", 4, 1, 4)
	for i := range 4 {
		a.Fact(0, "core", fmt.Sprint("a", i), 1, 4, 4)
	}
	for i := range 4 {
		b.Fact(0, "core", fmt.Sprint("b", i), 1, 4, 4)
	}
	got := make(map[string]api.FactChange)
	last := 0
	for _, f := range comparison.Diff(a, b, nil).Metadata {
		got[f.Section+" "+f.Name] = f
		weight := map[bool]int{f.Expected: 1}[true]
		if f.Kind == comparison.Same {
			weight = 2
		}
		if weight < last {
			t.Errorf("%+v is out of order", f)
		}
		last = weight
	}
	f := func(name, kind, x, y string, expected bool) {
		t.Helper()
		if g := got[name]; g.Kind != kind || g.Values != [2]string{x, y} || g.Expected != expected {
			t.Errorf("%s: %+v", name, g)
		}
	}
	f("run ranks", "same", "4", "4", false)
	f("hosts node00", "differs", "2 ranks", "1 rank", false)
	f("hosts node01", "gone", "2 ranks", "", false)
	f("hosts node02", "new", "", "3 ranks", false)
	f("settings algorithm", "differs", "tail", "hbos", false)
	f("settings out", "differs", "run", "elsewhere", true)
	f("run started", "differs", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20Z", true)
	f("metadata CPU Type", "differs", "fast", "fast (3 ranks), slow (1 rank)", false)
	f("metadata Local Time", "differs", "noon (3 ranks), later (1 rank)", "evening", true)
	f("metadata OMP_NUM_THREADS", "new", "", "8", false)
	f("metadata core", "differs", "a0 (1 rank), a1 (1 rank), a2 (1 rank), a3 (1 rank)", "b0 (1 rank), b1 (1 rank), b2 (1 rank), b3 (1 rank)",
		true)
}

func TestOverlayDistances(t *testing.T) {
	f := func(a, b json.RawMessage, distance, at, moved float64) {
		t.Helper()
		h := comparison.Overlay([2]json.RawMessage{a, b}, 40)
		if h == nil || math.Abs(h.Distance-distance) > 1e-12 || h.At != at || math.Abs(h.Moved-moved) > 1e-9 {
			t.Fatalf("got %+v, want %v at %v, moved %v", h, distance, at, moved)
		}
		for i, s := range h.Shares {
			sum := 0.0
			for _, v := range s {
				sum += v
			}
			if math.Abs(sum-1) > 1e-9 || len(s) != 40 || len(h.Edges) != 41 {
				t.Errorf("the shares of %d are %v in all", i, sum)
			}
		}
	}
	one := histogram([]float64{10, 20}, []float64{5})
	f(one, one, 0, 0, 0)
	f(one, histogram([]float64{110, 120}, []float64{9}), 1, 20, 100) // all calls moved by 100
	// the mean moved by 5, the shares do not cross
	f(one, histogram([]float64{10, 30}, []float64{1}), 0.5, 20, 5)
	f(histogram([]float64{0, 10, 20}, []float64{1, 1}), one, 0.5, 10, 5)                               // begins at 0, which has no logarithm
	f(histogram([]float64{5, 15}, []float64{1}), histogram([]float64{9, 11}, []float64{1}), 0.4, 9, 2) // narrower: the shares cross
	if h := comparison.Overlay([2]json.RawMessage{one, nil}, 4); h != nil {
		t.Errorf("of nothing: %+v", h)
	}
	if h := comparison.Overlay([2]json.RawMessage{one, histogram([]float64{-1.7e308, 1.7e308}, []float64{1})}, 4); h != nil &&
		math.IsInf(h.Moved, 0) {
		t.Errorf("of impossible times: %+v", h)
	}
}

func TestBaselineRoundTrip(t *testing.T) {
	r := someRun()
	var b, again bytes.Buffer
	if err := errors.Join(r.Encode(&b), r.Encode(&again)); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) ||
		!comparison.IsBaseline(b.Bytes()) {
		t.Fatalf("%v; the bytes differ", err)
	}
	read, err := comparison.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if x, y := comparison.Diff(r, someRun(), nil), comparison.Diff(read, someRun(), nil); !reflect.DeepEqual(x, y) {
		t.Errorf("\n got %+v\nwant %+v", y, x)
	}
	if at := read.Path(0, []string{"main", "solve"}); at != 1 || len(read.Paths) != 2 {
		t.Errorf("the path is at %d of %d", at, len(read.Paths))
	}
}

// packed compresses text as a baseline is.
func packed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // into memory
	_ = z.Close()
	return b.Bytes()
}

func TestDecodeRejectsDamagedBaselines(t *testing.T) {
	f := func(content []byte, want string) {
		t.Helper()
		if r, err := comparison.Decode(bytes.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, %v; want %q", content, r, err, want)
		}
	}
	const head = `{"format":"chimbuko baseline","version":1,"run":`
	f(nil, "not a file of chimbuko baseline")
	f([]byte("duck"), "not a file of chimbuko baseline")
	f(packed("nonsense"), "not a file of chimbuko baseline")
	f(packed("{}"), "not a file of chimbuko baseline")
	f(packed(head + `{}}`)[:30], "not a file of chimbuko baseline")
	f(packed(`{"format":"chimbuko baseline","version":7}`), "newer chimbuko: it has format 7")
	f(packed(`{"format":"chimbuko baseline"}`), "earlier chimbuko: it has format 0")
	f(packed(head+`null}`), "no run")
	f(packed(head+`{"paths":[{"parent":0,"function":"f"}]}}`), "call path 0 continues 0")
	f(packed(head+`{"paths":[{"parent":-1,"function":"f"},{"parent":0,"program":1,"function":"f"}]}}`), "call path 1 continues 0")
	f(packed(head+`{"paths":[{"parent":-1,"function":"f","lost_us":-1}]}}`), "impossible numbers")
	f(packed(head+`{"functions":[{"name":"f","calls":-1}]}}`), "-1 calls")
	f(packed(head+`{"functions":[{"name":"f"},{"name":"f"}]}}`), "repeated")
	f(packed(head+`{"functions":7}}`), "damaged")
}

func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := someRun().Encode(&b); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte(`{"format":"chimbuko baseline","version":1,"run":{"paths":[{"parent":-1}]}}`))
	kinds := []string{comparison.New, comparison.Worse, comparison.Better, comparison.Gone, comparison.Same}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := comparison.Decode(bytes.NewReader(packed(string(content))))
		if err != nil {
			return
		}
		for _, d := range []*api.Difference{
			comparison.Diff(r, someRun(), nil), comparison.Diff(someRun(), r, nil),
			comparison.Diff(r, r, nil),
		} {
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(d.Changes, func(c api.PathChange) bool { return !slices.Contains(kinds, c.Kind) }) {
				t.Errorf("%+v", d.Changes)
			}
		}
		var again bytes.Buffer
		if err := r.Encode(&again); err != nil {
			t.Fatal(err)
		}
		if _, err := comparison.Decode(&again); err != nil {
			t.Errorf("cannot decode what Encode wrote: %v", err)
		}
	})
}
